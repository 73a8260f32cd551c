package relay

import (
	"context"
	"time"

	"github.com/walrelay/walrelay/ack"
	"github.com/walrelay/walrelay/event"
)

// feed publishes one batch.
func (f *feed) feed(ctx context.Context, b *event.Batch) error {
	events := b.Events
	if f.r.obs.Received != nil && len(events) > 0 {
		var n int64
		for i := range events {
			n += int64(len(events[i].Fields[event.Payload]))
		}
		f.r.obs.Received(f.Name, len(events), n)
	}
	window := f.window.Load()
	if f.r.sort != nil {
		defer f.r.sort.flush(f)
	}
	for _, span := range b.Spans {
		if span.Events == 0 && span.Done && !f.open {
			for !window.Idle(span.End) {
				if err := f.waitForRoom(ctx); err != nil {
					return err
				}
			}
			f.r.wakeCommitter()
			f.passed(span.End, 0)
			continue
		}
		for !f.open {
			if f.entry, f.open = window.Open(); !f.open {
				if err := f.waitForRoom(ctx); err != nil {
					return err
				}
			}
		}
		if err := f.span(ctx, window, events[:span.Events], b.Memory); err != nil {
			return err
		}
		if span.Done {
			f.open = false
			if window.Close(f.entry, span.End, f.micros) {
				f.r.wakeCommitter()
			}
			f.passed(span.End, f.micros)
		}
		events = events[span.Events:]
	}
	return nil
}

// passed notes that everything up to a position was published, or waits for its place.
func (f *feed) passed(pos event.Position, micros int64) {
	if f.r.sort != nil {
		f.r.sort.passed(f, pos, micros)
	}
}

// scratchSize is how much made-up memory (formatted times and stamps) is
// allocated at a time; records keep pointing into it, the collector frees it.
const (
	scratchSize = 64 << 10
	scratchMin  = 2 << 10
)

// span publishes the events of one transaction in one batch. What each of them
// needs is counted once for all, before the first: results come while we go on.
func (f *feed) span(ctx context.Context, window *ack.Window, events []event.Event, mem *event.Memory) error {
	if len(events) == 0 {
		return nil
	}
	f.micros = events[0].CommitMicros
	window.Add(f.entry, len(events))
	mem.Retain(len(events))
	f.underWay.Add(int64(len(events)))
	for i := range events {
		err := f.publish(ctx, &events[i], mem)
		if err == nil {
			continue
		}
		// This one and the rest were not taken: there will be no results. The entry
		// stays incomplete, so that nothing here is confirmed.
		f.underWay.Add(int64(i - len(events)))
		for range events[i:] {
			mem.Release()
		}
		return err
	}
	return nil
}

func (f *feed) publish(ctx context.Context, ev *event.Event, mem *event.Memory) error {
	if cap(f.scratch)-len(f.scratch) < scratchMin {
		f.scratch = make([]byte, 0, scratchSize)
	}
	if failure := f.failure.Load(); failure != nil {
		return *failure
	}
	var poison error
	if ev.Prepared != nil {
		f.rec = *ev.Prepared
	} else {
		f.scratch, poison = f.Router.Route(ev, &f.rec, f.scratch)
	}
	if ev.Refused != nil {
		poison = ev.Refused // the earlier finding says more
	}
	t := event.Ticket{Memory: mem, Entry: f.entry, Source: f.index}
	switch {
	case poison != nil && event.ClassOf(poison) != event.Poison:
		return poison
	case f.rec.Order != event.ByCommit && f.r.sort != nil:
		return f.r.sort.add(ctx, f, ev, &f.rec, poison, t)
	case poison != nil:
		return f.r.pub.Refuse(ctx, &f.rec, t, poison)
	default:
		if digits := ev.Fields[event.HLC]; len(digits) > 0 {
			f.inversions.note(&f.rec, digits)
		}
		return f.r.pub.Publish(ctx, &f.rec, t)
	}
}

// waitForRoom waits until the committer has confirmed something.
func (f *feed) waitForRoom(ctx context.Context) error {
	f.r.wakeCommitter()
	if f.r.sort != nil {
		f.r.sort.press(f)
	}
	t := time.NewTimer(time.Second)
	defer t.Stop()
	select {
	case <-f.room:
	case <-t.C:
		if f.r.obs.FeederBeat != nil {
			f.r.obs.FeederBeat(f.Name)
		}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}
