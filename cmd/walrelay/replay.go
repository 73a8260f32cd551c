package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/walrelay/walrelay/config"
	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/publish"
	"github.com/walrelay/walrelay/router"
)

// replayPage is how many rows are read at a time.
const replayPage = 500

// replay is what is to be published again.
type replay struct {
	source string
	filter outbox.Filter
	limit  int
	dryRun bool
}

func (a *app) replayCommand() *cobra.Command {
	var r replay
	cmd := &cobra.Command{
		Use:   "replay --event-id ID | --route ROUTE --since TIME --until TIME",
		Short: "publish rows again that were published before", Args: cobra.NoArgs,
		Long: `replay reads published rows from the table, oldest first, and publishes them again as the
relay would: same topic, key, headers and event id. It changes nothing in the table. Consumers that know an event id
already skip it. Times are those of publishing; without a zone they are UTC.
Exit codes as elsewhere: 3 an event is refused or a right is missing, 5 Kafka did not acknowledge everything.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := r.check(); err != nil {
				return err
			}
			return a.replay(cmd.Context(), r)
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.source, "source", "", "name of the source; may be left out when there is one")
	f.StringVar(&r.filter.EventID, "event-id", "", "the event with this id")
	f.StringVar(&r.filter.Route, "route", "", "events of this route")
	f.StringVar(&r.filter.Since, "since", "", "published at or after this time, for instance 2026-06-01T12:00:00Z")
	f.StringVar(&r.filter.Until, "until", "", "published before this time")
	f.IntVar(&r.limit, "limit", 0, "how many events at most (0: all)")
	f.BoolVar(&r.dryRun, "dry-run", false, "say what would be published, and where; publish nothing")
	return cmd
}

// check refuses what would replay more than was meant.
func (r *replay) check() error {
	f := &r.filter
	switch byTime := f.Route != "" && f.Since != "" && f.Until != ""; {
	case f.EventID == "" && !byTime, f.EventID != "" && f.Route+f.Since+f.Until != "":
		return usageError("replay: give --event-id, or all three of --route, --since and --until")
	case r.limit < 0:
		return usageError("replay: --limit is %d, want 0 or more", r.limit)
	}
	for _, t := range []string{f.Since, f.Until} {
		if t != "" && !readable(t) {
			return usageError("replay: %q is no time: want a form like 2026-06-01T12:00:00Z or 2026-06-01 12:00", t)
		}
	}
	return nil
}

func readable(t string) bool {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00", time.DateTime, "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02T15:04", time.DateOnly} {
		if _, err := time.Parse(layout, t); err == nil {
			return true
		}
	}
	return false
}

func (a *app) replay(ctx context.Context, r replay) error {
	c, _, err := a.load()
	if err != nil {
		return err
	}
	name, err := pickSource(c, r.source)
	if err != nil {
		return err
	}
	if !c.HasTable(name) {
		return usageError("source %s has no table: its messages are nowhere but in the log", name)
	}
	ropt, err := c.RouterOptions(name)
	if err != nil {
		return err
	}
	rt, err := router.New(ropt)
	if err != nil {
		return err
	}
	db, err := openStore(c, name)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close(context.WithoutCancel(ctx)) }()
	tables, err := db.Tables(ctx)
	if err != nil {
		return err
	}
	out := &replaying{app: a, dryRun: r.dryRun, topics: map[string]int{}}
	if !r.dryRun {
		if err := out.open(ctx, c); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go out.watch(ctx, cancel)
	for _, t := range tables {
		if err = out.readTable(ctx, t, rt, r); err != nil {
			break
		}
	}
	if !r.dryRun {
		err = out.close(ctx, c, err)
	}
	word := "published again"
	if r.dryRun {
		word = "would be published again"
	}
	fmt.Fprintf(a.out, "%s: %s %s%s\n", name, plural(out.count(r.dryRun), "event", "events"), word, out.where())
	return err
}

// replaying publishes what is read.
type replaying struct {
	*app
	dryRun bool
	pub    *publish.Publisher
	topics map[string]int

	mu     sync.Mutex
	taken  int
	acked  int
	failed error
}

// replayPatience is how long Kafka may acknowledge nothing of what is under way.
const replayPatience = time.Minute

// watch ends a replay that does not get on: nobody may be looking.
func (p *replaying) watch(ctx context.Context, cancel context.CancelCauseFunc) {
	last, since := -1, time.Now()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		p.mu.Lock()
		taken, acked := p.taken, p.acked
		p.mu.Unlock()
		if acked != last || acked == taken {
			last, since = acked, time.Now()
		} else if time.Since(since) > replayPatience {
			cancel(&event.Error{
				Class: event.Halt, Fault: event.FaultUnacknowledged, Anchor: "stopped-unacknowledged",
				What:   fmt.Sprintf("Kafka acknowledged nothing for %s; %d of %d events are not acknowledged", replayPatience, taken-acked, taken),
				Remedy: "see what was said above of the topic and the brokers, then replay again",
			})
			return
		}
	}
}

// take counts an event that is about to be published.
func (p *replaying) take() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken++
	return p.taken
}

// open makes a publisher of its own, which stops at what it cannot publish: a
// replayed event is nobody's to put aside.
func (p *replaying) open(ctx context.Context, c *config.Config) error {
	opt := c.PublishOptions()
	opt.OnPoison, opt.DLQTopic, opt.Desk = publish.PoisonStop, "", nil
	opt.Result = func(_ event.Ticket, err error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch {
		case err == nil:
			p.acked++
		case p.failed == nil || errors.Is(p.failed, publish.ErrStopped):
			p.failed = err
		}
	}
	var said sync.Map
	var err error
	p.pub, err = publish.Open(ctx, opt, publish.Observer{Condition: func(key string, cond event.Condition) {
		if was, _ := said.Swap(key, cond.What); cond.What != "" && was != cond.What {
			fmt.Fprintln(p.err, "walrelay: "+p.secrets.String(cond.What+" ("+cond.Remedy+")"))
		}
	}})
	return err
}

// readTable reads page after page and publishes it.
func (p *replaying) readTable(ctx context.Context, t outbox.Table, rt *router.Router, r replay) error {
	filter := r.filter
	for {
		filter.Limit = replayPage
		if r.limit > 0 {
			if filter.Limit = min(replayPage, r.limit-p.count(true)); filter.Limit == 0 {
				return nil
			}
		}
		page, err := t.Read(ctx, filter)
		if err != nil {
			return err
		}
		for i := range page.Rows {
			if err := p.publish(ctx, &page.Rows[i], rt); err != nil {
				return err
			}
		}
		if len(page.Rows) < filter.Limit {
			return nil
		}
		filter.After = page.Rows[len(page.Rows)-1].ID
	}
}

func (p *replaying) publish(ctx context.Context, row *outbox.Row, rt *router.Router) error {
	var rec event.Record
	_, why := rt.Route(&row.Event, &rec, nil) // with memory of its own for each record
	if why == nil {
		why = row.Event.Refused
	}
	n := p.take()
	if p.dryRun {
		if why != nil {
			return fmt.Errorf("event %s: %w", rec.Origin.EventID, why)
		}
		p.topics[rec.Topic]++
		return nil
	}
	t := event.Ticket{Entry: uint64(n)}
	if why != nil {
		return p.pub.Refuse(ctx, &rec, t, why)
	}
	p.topics[rec.Topic]++
	return p.pub.Publish(ctx, &rec, t)
}

// close waits for what is under way, and says what went wrong first.
func (p *replaying) close(ctx context.Context, c *config.Config, err error) error {
	grace := context.WithoutCancel(ctx)
	if ctx.Err() != nil || err != nil {
		var cancel context.CancelFunc
		grace, cancel = context.WithTimeout(grace, c.Grace)
		defer cancel()
	} else {
		grace = ctx // an interrupt ends the wait for a broker that does not answer
	}
	closeErr := p.pub.Close(grace)
	p.mu.Lock()
	defer p.mu.Unlock()
	var stopped *event.Error
	switch {
	case p.failed != nil && errors.As(p.failed, &stopped) && stopped.Fault == event.FaultPrecondition:
		return p.failed
	case ctx.Err() != nil && errors.As(context.Cause(ctx), &stopped):
		return stopped
	case err != nil:
		return err
	case closeErr != nil:
		return closeErr
	}
	return p.failed
}

func (p *replaying) count(dryRun bool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if dryRun {
		return p.taken
	}
	return p.acked
}

func (p *replaying) where() string {
	var list []string
	for _, topic := range slices.Sorted(maps.Keys(p.topics)) {
		list = append(list, fmt.Sprintf("%s %d", tidy(topic), p.topics[topic]))
	}
	if len(list) == 0 {
		return ""
	}
	return " (" + strings.Join(list, ", ") + ")"
}
