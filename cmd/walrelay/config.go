package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func (a *app) configCommand() *cobra.Command {
	return &cobra.Command{
		Use: "config", Short: "print the effective configuration, secrets masked", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			c, warnings, err := a.load()
			for _, w := range warnings {
				fmt.Fprintf(a.err, "warning: %s\n", a.secrets.String(w.String()))
			}
			if err != nil {
				return err
			}
			return c.Print(a.out)
		},
	}
}
