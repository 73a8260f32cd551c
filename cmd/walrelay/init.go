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
	var print, newSlot bool
	var source string
	cmd := &cobra.Command{
		Use: "init", Short: "make (or --print) the outbox, the publication and the slot or the position, and walrelay's own tables", Args: cobra.NoArgs,
		Long: `init makes what is missing and leaves what is there; what is there and differs is
an error that names the difference. The publication is made before the slot. A source with capture: poll
gets neither; one with capture: auto gets its slot later where the role may not replicate yet.
With --print it only writes the SQL (for MongoDB a script for mongosh), without connecting to anything.

--new-slot is for after a gap: it drops the slot and makes a new one that begins now. What the old slot
still had to bring is given up: publish it by hand first. The relay must not be running.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, _, err := a.load()
			if err != nil {
				return err
			}
			if newSlot {
				name, err := pickSource(c, source)
				if err != nil {
					return err
				}
				return a.newSlot(cmd.Context(), c, name)
			}
			for _, s := range c.Sources {
				if source != "" && source != s.Key {
					continue
				}
				if err := a.initSource(cmd.Context(), c, s.Key, print); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&print, "print", false, "print the SQL (or the script) instead of running it")
	cmd.Flags().BoolVar(&newSlot, "new-slot", false, "give up the slot's log and make a new slot (or position) that begins now")
	cmd.Flags().StringVar(&source, "source", "", "only this source")
	return cmd
}

func (a *app) newSlot(ctx context.Context, c *config.Config, source string) error {
	if c.IsMongo(source) {
		return a.newPosition(ctx, c, source)
	}
	opt, err := c.SlotOptions(source)
	if err != nil {
		return err
	}
	opt = opt.WithDefaults()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	conn, err := slot.Connect(ctx, opt)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	m, err := slot.ReplaceSlot(ctx, conn, opt)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "%s: slot %s begins anew at %s\n", source, m.Slot, m.Confirmed)
	return err
}

func (a *app) initSource(ctx context.Context, c *config.Config, source string, print bool) error {
	if c.IsMongo(source) {
		return a.initMongo(ctx, c, source, print)
	}
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
		if s.Without != "" {
			fmt.Fprintf(a.out, "later  %s: %s (%s)\n", source, s.What, a.secrets.String(s.Without))
			continue
		}
		fmt.Fprintf(a.out, "%s  %s: %s\n", mark, source, s.What)
	}
	return err
}
