package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/mongostream"
	"github.com/walrelay/walrelay/slot"
)

func (a *app) positionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "position", Short: "show the remembered positions, or accept another after a gap", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var source string
	show := &cobra.Command{
		Use: "show", Short: "the slot's position and the remembered one of each source", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.eachSource(cmd.Context(), "", a.showPosition, a.showRecord)
		},
	}
	var toSlot bool
	var to target
	set := &cobra.Command{
		Use: "set --source NAME --to-slot | --now | --after-time TIME | --token DIGITS | --past-oversize", Short: "take another position for the right one", Args: cobra.NoArgs,
		Long: `Of Postgres, set --to-slot ends the halt after a gap: walrelay goes on where the slot stands, and
what was committed before and is not in Kafka is left to you. Compare the outbox with the topics first.
Of MongoDB, set --now, --after-time (RFC 3339, or as show prints it) and --token say where
the change stream is taken up: what was inserted before and is not in Kafka is left to you.
The relay must not be running.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if source == "" || toSlot == to.given() {
				return usageError("position set: say which source, and which position is to be taken: --source NAME with --to-slot, or for MongoDB --now, --after-time or --token, or --past-oversize")
			}
			return a.eachSource(cmd.Context(), source, func(ctx context.Context, db slot.DB, opt slot.Options) error {
				if !toSlot {
					return usageError("source %s is a Postgres database: its positions are its slot's, --to-slot", opt.Source)
				}
				return a.acceptSlot(ctx, db, opt)
			}, func(ctx context.Context, client *mongo.Client, opt mongostream.Options) error {
				if toSlot {
					return usageError("source %s is a replica set, which has no slots: --now, --after-time or --token", opt.Source)
				}
				return a.setRecord(ctx, client, opt, to)
			})
		},
	}
	set.Flags().StringVar(&source, "source", "", "name of the source")
	set.Flags().BoolVar(&toSlot, "to-slot", false, "accept the position that the slot has")
	to.flags(set.Flags())
	cmd.AddCommand(show, set)
	return cmd
}

// eachSource runs f for the named source, or for all, each with a connection.
func (a *app) eachSource(ctx context.Context, name string, f func(context.Context, slot.DB, slot.Options) error,
	m func(context.Context, *mongo.Client, mongostream.Options) error,
) error {
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
		if c.Capture(s.Key) == slot.CapturePoll {
			if name != "" {
				return usageError("source %s is polled: it has no position", s.Key)
			}
			fmt.Fprintf(a.out, "%s: polled, without a position; see 'walrelay status'\n", s.Key)
			continue
		}
		if c.IsMongo(s.Key) {
			opt, err := c.MongoOptions(s.Key)
			if err != nil {
				return err
			}
			if err := withMongo(ctx, opt, 30*time.Second, func(ctx context.Context, client *mongo.Client) error { return m(ctx, client, opt) }); err != nil {
				return err
			}
			continue
		}
		opt, err := c.SlotOptions(s.Key)
		if err != nil {
			return err
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
