package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/walrelay/walrelay/config"
	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

// commandTimeout bounds what an operator's command asks of a database at a time.
const commandTimeout = 60 * time.Second

// parkedFlags narrow what the commands are about.
type parkedFlags struct {
	source, key, route, event, state string
	asJSON, payload, all             bool
	limit                            int
	after                            int64
}

func (f *parkedFlags) filter() outbox.ParkedFilter {
	return outbox.ParkedFilter{Key: f.key, Route: f.route, EventID: f.event, State: outbox.ParkState(f.state), After: f.after, Limit: f.limit}
}

func (a *app) parkedCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "parked", Short: "see, retry or give up events that were put aside", Args: cobra.NoArgs,
		Long: `Events that can never be published as they are (on_poison: park), and those that were
tried too often, are put aside. Each holds its key: later events of the key wait behind it, other keys go on.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var list, show, retry, drop parkedFlags
	add := func(f *parkedFlags, c *cobra.Command, run func(context.Context, *parkedFlags, []string) error) *cobra.Command {
		c.Flags().StringVar(&f.source, "source", "", "name of the source; may be left out when there is one")
		c.RunE = func(cmd *cobra.Command, args []string) error { return run(cmd.Context(), f, args) }
		cmd.AddCommand(c)
		return c
	}
	narrow := func(f *parkedFlags, c *cobra.Command) {
		c.Flags().StringVar(&f.key, "key", "", "only events of this key")
		c.Flags().StringVar(&f.route, "route", "", "only events of this route")
	}
	l := add(&list, &cobra.Command{Use: "list", Short: "the events that are put aside, of all sources", Args: cobra.NoArgs}, a.listParked)
	narrow(&list, l)
	l.Flags().StringVar(&list.event, "event-id", "", "only the event with this id")
	l.Flags().StringVar(&list.state, "state", "", "parked (wait for a human), behind (an earlier event of the key) or retrying")
	l.Flags().BoolVar(&list.asJSON, "json", false, "print JSON")
	l.Flags().IntVar(&list.limit, "limit", 100, "how many to print at most")
	l.Flags().Int64Var(&list.after, "after", 0, "go on after this id")

	s := add(&show, &cobra.Command{Use: "show ID", Short: "all that is known of one of them", Args: cobra.ExactArgs(1)}, a.showParked)
	s.Flags().BoolVar(&show.asJSON, "json", false, "print JSON")
	s.Flags().BoolVar(&show.payload, "payload", false, "print the payload as well")

	r := add(&retry, &cobra.Command{
		Use: "retry ID… | --all", Short: "let them go again; what waits behind them follows in order",
	}, func(ctx context.Context, f *parkedFlags, args []string) error {
		return a.release(ctx, f, args, release{
			verb: "retry", done: "told to go again", do: func(k parkingStore) changer { return k.Retry },
			refuse: func(p *outbox.Parked) string {
				switch {
				case p.State == outbox.StateRetrying:
					return "was told to go already"
				case p.State == outbox.StateBehind:
					return "waits behind another event of key " + tidy(p.Key) + ": retry that one"
				case p.Partial:
					return "was refused before its record was complete, and there is no row to make it anew from: drop it, and write the event again"
				}
				return ""
			},
		})
	})
	narrow(&retry, r)
	r.Flags().BoolVar(&retry.all, "all", false, "all that are parked, narrowed by --key and --route")

	d := add(&drop, &cobra.Command{
		Use: "drop ID… | --all", Short: "give them up; rows stay failed, events that are kept whole are gone for good",
	}, func(ctx context.Context, f *parkedFlags, args []string) error {
		return a.release(ctx, f, args, release{
			verb: "drop", done: "given up", do: func(k parkingStore) changer { return k.Drop },
			refuse: func(*outbox.Parked) string { return "" },
		})
	})
	narrow(&drop, d)
	d.Flags().BoolVar(&drop.all, "all", false, "all that are parked, narrowed by --key and --route; what waits behind them stays")
	return cmd
}

// eachParking opens the parking stores of the named source, or of all that have one.
func (a *app) eachParking(ctx context.Context, c *config.Config, name string, f func(context.Context, parkingStore) error) error {
	found := false
	for _, s := range c.Sources {
		if name != "" && name != s.Key {
			continue
		}
		found = true
		if !c.KeepsBooks(s.Key) {
			if name != "" {
				return usageError("source %s has no bookkeeping (bookkeeping: none): nothing is put aside", name)
			}
			continue
		}
		db, err := openStore(c, s.Key)
		if err != nil {
			return err
		}
		callCtx, cancel := context.WithTimeout(ctx, commandTimeout)
		err = f(callCtx, db.Parking())
		cancel()
		_ = db.Close(context.WithoutCancel(ctx))
		if err != nil {
			return err
		}
	}
	if !found {
		return usageError("there is no source %q in the configuration", name)
	}
	return nil
}

func (a *app) listParked(ctx context.Context, f *parkedFlags, _ []string) error {
	switch outbox.ParkState(f.state) {
	case "", outbox.StateParked, outbox.StateBehind, outbox.StateRetrying:
	default:
		return usageError("parked list: state %q is unknown, want parked, behind or retrying", f.state)
	}
	if f.limit < 1 {
		return usageError("parked list: --limit is %d, want at least 1", f.limit)
	}
	c, _, err := a.load()
	if err != nil {
		return err
	}
	views := []parkedView{}
	more := ""
	err = a.eachParking(ctx, c, f.source, func(ctx context.Context, k parkingStore) error {
		filter := f.filter()
		filter.Limit++
		entries, err := k.List(ctx, filter)
		if err != nil {
			return err
		}
		if len(entries) > f.limit {
			entries = entries[:f.limit]
			more += fmt.Sprintf("%s has more: --source %s --after %d\n", k.Source(), k.Source(), entries[f.limit-1].ID)
		}
		for i := range entries {
			views = append(views, viewOf(k.Source(), &entries[i]))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if f.asJSON {
		return a.printJSON(views)
	}
	if len(views) == 0 {
		fmt.Fprintln(a.out, "nothing is put aside")
		return nil
	}
	w := tabwriter.NewWriter(a.out, 2, 8, 2, ' ', 0)
	fmt.Fprintln(w, "SOURCE\tID\tSTATE\tKEY\tROUTE\tEVENT\tREASON\tKEPT\tSINCE")
	for _, v := range views {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", v.Source, v.ID, v.State, tidy(v.Key), tidy(v.Route), tidy(v.EventID), v.Reason, v.Kept,
			v.ParkedAt.UTC().Format(time.DateTime))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprint(a.out, more)
	return err
}

func (a *app) showParked(ctx context.Context, f *parkedFlags, args []string) error {
	ids, err := parseIDs(args)
	if err != nil {
		return err
	}
	c, _, err := a.load()
	if err != nil {
		return err
	}
	name, err := pickSource(c, f.source)
	if err != nil {
		return err
	}
	return a.eachParking(ctx, c, name, func(ctx context.Context, k parkingStore) error {
		p, err := k.Show(ctx, ids[0])
		if err != nil {
			return err
		}
		if p == nil {
			return unknownEntry(name, ids[0])
		}
		v := viewOf(name, p)
		v.detail(p, f.payload)
		if f.asJSON {
			return a.printJSON(v)
		}
		return v.print(a.out)
	})
}

type changer func(ctx context.Context, ids []int64) (int, error)

// release is a command that changes entries.
type release struct {
	verb, done string
	do         func(parkingStore) changer
	refuse     func(*outbox.Parked) string // why it cannot be done to an entry
}

func (a *app) release(ctx context.Context, f *parkedFlags, args []string, r release) error {
	ids, err := parseIDs(args)
	if err != nil {
		return err
	}
	if f.all == (len(ids) > 0) || len(ids) > 0 && f.key+f.route != "" {
		return usageError("parked %s: give ids, or --all with --key and --route where you like", r.verb)
	}
	c, _, err := a.load()
	if err != nil {
		return err
	}
	name, err := pickSource(c, f.source)
	if err != nil {
		return err
	}
	return a.eachParking(ctx, c, name, func(ctx context.Context, k parkingStore) error {
		entries, complaints, err := choose(ctx, k, f, ids)
		if err != nil {
			return err
		}
		var able []int64
		for i := range entries {
			if why := r.refuse(&entries[i]); why != "" {
				complaints = append(complaints, fmt.Sprintf("%d %s", entries[i].ID, why))
				continue
			}
			able = append(able, entries[i].ID)
		}
		n := 0
		for len(able) > 0 {
			part := able[:min(len(able), 1000)]
			able = able[len(part):]
			changed, err := r.do(k)(ctx, part)
			if err != nil {
				return err
			}
			n += changed
		}
		fmt.Fprintf(a.out, "%s: %s %s\n", name, plural(n, "event was", "events were"), r.done)
		for _, line := range complaints {
			fmt.Fprintln(a.err, "walrelay: "+line)
		}
		if len(complaints) > 0 {
			return errShown
		}
		return nil
	})
}

// choose finds the entries that are meant: those with the ids, or all that are parked.
func choose(ctx context.Context, k parkingStore, f *parkedFlags, ids []int64) (entries []outbox.Parked, missing []string, err error) {
	if f.all {
		filter := f.filter()
		filter.State, filter.Limit = outbox.StateParked, 1000
		for {
			page, err := k.List(ctx, filter)
			if err != nil || len(page) == 0 {
				return entries, nil, err
			}
			entries = append(entries, page...)
			filter.After = page[len(page)-1].ID
		}
	}
	for _, id := range ids {
		page, err := k.List(ctx, outbox.ParkedFilter{After: id - 1, Limit: 1})
		switch {
		case err != nil:
			return nil, nil, err
		case len(page) == 0 || page[0].ID != id:
			missing = append(missing, unknownEntry(k.Source(), id).Error())
		default:
			entries = append(entries, page[0])
		}
	}
	return entries, missing, nil
}

func unknownEntry(source string, id int64) error {
	return &event.Error{Class: event.Halt, What: fmt.Sprintf("source %s has no parked event %d", source, id), Anchor: "parked-events"}
}

func parseIDs(args []string) ([]int64, error) {
	ids := make([]int64, 0, len(args))
	for _, arg := range args {
		id, err := strconv.ParseInt(arg, 10, 64)
		if err != nil || id < 1 {
			return nil, usageError("%q is no id of a parked event: see 'walrelay parked list'", arg)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// tidy keeps what events carry from moving the cursor about.
func tidy(s string) string {
	if s == "" {
		return "-"
	}
	if strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}
