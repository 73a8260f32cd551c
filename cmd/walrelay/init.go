package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/walrelay/walrelay/config"
	"github.com/walrelay/walrelay/slot"
)

func (a *app) initCommand() *cobra.Command {
	var print bool
	cmd := &cobra.Command{
		Use: "init", Short: "make (or --print) the outbox table, the publication, the slot and walrelay's own schema", Args: cobra.NoArgs,
		Long: `init makes what is missing and leaves what is there; what is there and differs is
an error that names the difference. The publication is made before the slot.
With --print it only writes the SQL, without connecting to anything.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, _, err := a.load()
			if err != nil {
				return err
			}
			for _, s := range c.Sources {
				if err := a.initSource(cmd.Context(), c, s.Key, print); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&print, "print", false, "print the SQL instead of running it")
	return cmd
}

func (a *app) initSource(ctx context.Context, c *config.Config, source string, print bool) error {
	opt, err := c.SlotOptions(source)
	if err != nil {
		return err
	}
	if print {
		return slot.Print(a.out, opt)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute) // a slot waits for every transaction that is open
	defer cancel()
	conn, err := slot.Connect(ctx, opt)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	steps, err := slot.Apply(ctx, conn, opt)
	for _, s := range steps {
		mark := "made "
		if s.Done() {
			mark = "there"
		}
		fmt.Fprintf(a.out, "%s  %s: %s\n", mark, source, s.What)
	}
	return err
}
