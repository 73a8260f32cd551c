package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/walrelay/walrelay/slot"
)

func (a *app) positionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "position", Short: "show the remembered positions, or accept the slot's after a gap", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var source string
	show := &cobra.Command{
		Use: "show", Short: "the slot's position and the remembered one of each source", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.eachSource(cmd.Context(), "", a.showPosition)
		},
	}
	var toSlot bool
	set := &cobra.Command{
		Use: "set --source NAME --to-slot", Short: "take the slot's position for the right one", Args: cobra.NoArgs,
		Long: `set --to-slot ends the halt after a gap: walrelay goes on where the slot stands, and
what was committed before and is not in Kafka is left to you. Compare the outbox with the topics first.
The relay must not be running.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if source == "" || !toSlot {
				return usageError("position set: say which source and that the slot's position is to be taken: --source NAME --to-slot")
			}
			return a.eachSource(cmd.Context(), source, a.acceptSlot)
		},
	}
	set.Flags().StringVar(&source, "source", "", "name of the source")
	set.Flags().BoolVar(&toSlot, "to-slot", false, "accept the position that the slot has")
	cmd.AddCommand(show, set)
	return cmd
}

// eachSource runs f for the named source, or for all, each with a connection.
func (a *app) eachSource(ctx context.Context, name string, f func(context.Context, slot.DB, slot.Options) error) error {
	c, _, err := a.load()
	if err != nil {
		return err
	}
	found := false
	for _, s := range c.Sources {
		if name != "" && name != s.Key {
			continue
		}
		found = true
		opt, err := c.SlotOptions(s.Key)
		if err != nil {
			return err
		}
		if opt.Capture == slot.CapturePoll {
			if name != "" {
				return usageError("source %s is polled: it has no position", s.Key)
			}
			fmt.Fprintf(a.out, "%s: polled, without a position; see 'walrelay status'\n", s.Key)
			continue
		}
		callCtx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		conn, err := slot.Connect(callCtx, opt)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
		if err := f(callCtx, conn, opt); err != nil {
			return err
		}
	}
	if !found {
		return usageError("there is no source %q in the configuration", name)
	}
	return nil
}

func (a *app) showPosition(ctx context.Context, db slot.DB, opt slot.Options) error {
	r, err := slot.ReadSlot(ctx, db, opt.Slot)
	if err != nil {
		return err
	}
	m, err := slot.ReadMarker(ctx, db, opt)
	if err != nil {
		return err
	}
	remembered := "nothing"
	if m != nil {
		remembered = fmt.Sprintf("%s on system %s, timeline %d (%s)", m.Confirmed, m.SystemID, m.Timeline, m.Phase)
	}
	_, err = fmt.Fprintf(a.out, "%s: slot %s confirms %s, keeps the log from %s (%d bytes, %s); remembered: %s; the log ends at %s\n",
		opt.Source, opt.Slot, r.ConfirmedLSN, r.RestartLSN, r.RetainedBytes, r.WALStatus, remembered, r.ServerHead)
	return err
}

func (a *app) acceptSlot(ctx context.Context, db slot.DB, opt slot.Options) error {
	m, err := slot.AcceptSlot(ctx, db, opt)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "%s: going on at %s, where slot %s stands\n", opt.Source, m.Confirmed, m.Slot)
	return err
}
