package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/walrelay/walrelay/event"
)

// prepare loads the held keys and draws the start line. Nothing may be published
// before: an event of a held key would pass the one that holds it.
func (s *Scribe) prepare(ctx context.Context) error {
	if s.parking != nil {
		held, err := persist(ctx, s, "reading the held keys", s.parking.Held)
		if err != nil {
			return err
		}
		for _, h := range held {
			s.gate.Hold(h.Key)
		}
		if err := s.kept.load(ctx, s); err != nil {
			return err
		}
	}
	if !s.opt.Marks {
		return nil
	}
	for _, t := range s.tables {
		if !t.Traits().Retries {
			continue
		}
		rows, err := persist(ctx, s, "looking for unfinished rows", func(ctx context.Context) ([]Unfinished, error) {
			rows, more, err := t.Unfinished(ctx, Shards{}, unfinishedLimit)
			if err == nil && more {
				err = &event.Error{
					Class: event.Halt, Fault: event.FaultPrecondition, Anchor: "held-keys",
					What:   fmt.Sprintf("more than %d rows of %s are in work or wait for another attempt: their keys cannot all be held", unfinishedLimit, t.Relation()),
					Remedy: "let the poller that works on them finish, or run with capture: poll until they are done",
				}
			}
			return rows, err
		})
		if err != nil {
			return err
		}
		for _, r := range rows {
			if !s.opt.IsLoose(r.Route) && !r.Processing {
				s.gate.Hold(r.Key)
			}
		}
	}
	if s.opt.StartLine != nil {
		line, err := persist(ctx, s, "reading the end of the log", s.opt.StartLine)
		if err != nil {
			return err
		}
		s.below = line
	}
	return nil
}

// unfinishedLimit is how many rows that hold their key are read at a start.
const unfinishedLimit = 100_000

// persist calls f until it succeeds, fails for good, or ctx ends.
func persist[T any](ctx context.Context, s *Scribe, doing string, f func(context.Context) (T, error)) (T, error) {
	fault := backoff{min: 100 * time.Millisecond, max: 5 * time.Second}
	for {
		v, err := f(ctx)
		switch {
		case err == nil:
			if fault.n > 0 {
				s.warn("table", event.Condition{})
			}
			return v, nil
		case ctx.Err() != nil:
			return v, context.Cause(ctx)
		case event.ClassOf(err) != event.Retry:
			return v, err
		}
		s.warn("table", event.Condition{
			What:   doing + " failed: " + err.Error(),
			Remedy: "nothing is published meanwhile; look at the database",
			Anchor: "marks-failing",
		})
		if !pace(ctx, nil, fault.next()) {
			return v, context.Cause(ctx)
		}
	}
}

// skipDelivered takes the events out of a batch that an earlier process delivered
// and marked before it could confirm them: below the start line the row says so.
// A row that is absent is published: it may have been deleted by the transaction
// that wrote it.
func (s *Scribe) skipDelivered(ctx context.Context, batch *event.Batch) error {
	ids := make([][]string, len(s.tables))
	for i := range batch.Events {
		ev := &batch.Events[i]
		if t := s.tableOf(ev); t >= 0 && ev.Commit.Compare(s.below) < 0 {
			ids[t] = append(ids[t], string(ev.Fields[event.RowID]))
		}
	}
	done := make([]map[string]bool, len(s.tables))
	for t, list := range ids {
		if len(list) == 0 {
			continue
		}
		var err error
		done[t], err = persist(ctx, s, "looking rows up", func(ctx context.Context) (map[string]bool, error) {
			return s.tables[t].LookUp(ctx, list)
		})
		if err != nil {
			return err
		}
	}
	s.skipped(takeOut(batch, func(ev *event.Event) bool {
		t := s.tableOf(ev)
		return t >= 0 && ev.Commit.Compare(s.below) < 0 && done[t][string(ev.Fields[event.RowID])]
	}))
	for _, span := range batch.Spans {
		if span.Done && !s.below.IsZero() && span.End.Compare(s.below) >= 0 {
			s.below = event.Position{}
		}
	}
	return nil
}

func (s *Scribe) skipped(n int) {
	if n > 0 && s.obs.Skipped != nil {
		s.obs.Skipped(n)
	}
}

// takeOut removes events from a batch. They are moved, not overwritten: each
// place keeps an event with memory of its own for the source to use again.
func takeOut(batch *event.Batch, out func(*event.Event) bool) (n int) {
	kept, from := 0, 0
	for i := range batch.Spans {
		span := &batch.Spans[i]
		left := 0
		for j := from; j < from+span.Events; j++ {
			if out(&batch.Events[j]) {
				n++
				continue
			}
			batch.Events[kept], batch.Events[j] = batch.Events[j], batch.Events[kept]
			kept++
			left++
		}
		from += span.Events
		span.Events = left
	}
	batch.Events = batch.Events[:kept]
	return n
}
