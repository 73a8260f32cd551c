package main

import (
	"fmt"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/ops"
)

// order is the room's share in the order of stamps: that of its log, and what its sweep
// added.
func (r *sourceRoom) order() ops.OrderFigures {
	var f ops.OrderFigures
	relay := r.relay.Load()
	if relay == nil {
		return f
	}
	all := relay.OrderFigures().Sources
	for n, i := range r.feeds {
		s := &all[i]
		f.Bytes += s.Bytes
		f.Events += int64(s.Items)
		f.Oldest = max(f.Oldest, s.Age)
		f.Stalls += s.Stalls
		f.Late += int64(s.Late)
		f.Early += int64(s.Early)
		f.Future += int64(s.Future)
		f.Unstamped += int64(s.Unstamped)
		f.Raised += int64(s.Raised)
		f.Conflicts += int64(s.Conflicts)
		if n == 0 { // nobody ever waits for a sweep
			f.Lag, f.LagKnown = s.Lag, s.Read
			f.Watermark = time.UnixMilli(s.Watermark.PhysicalMillis())
			f.Detached, f.Stalled = !s.Attached, s.Stalled
		}
	}
	return f
}

// inversions counts stamps that go back within a key, in commit order.
func (r *sourceRoom) inversions() (n int64, stamped bool) {
	relay := r.relay.Load()
	if relay == nil {
		return 0, false
	}
	for _, i := range r.feeds {
		found, any := relay.Inversions(i)
		n, stamped = n+found, stamped || any
	}
	return n, stamped
}

func (r *sourceRoom) clockUnread(err error) {
	why := event.ConditionOf(err)
	if why.Remedy == "" {
		why.Remedy = "let the relay's role connect once more beside its replication connection"
	}
	r.view.Warning("clock", event.Condition{
		What:   "the clock of the source's server cannot be read, which the order of stamps waits for: " + why.What,
		Remedy: why.Remedy,
		Anchor: "order-clock",
	})
}

func (r *sourceRoom) stalled(still time.Duration) {
	r.view.Warning("stalled", event.Condition{
		What:   fmt.Sprintf("the source's server was not heard of for %.0f s: the order of stamps does not wait for it, and what it brings later may be late", still.Seconds()),
		Remedy: "bring the source back; with order.on_source_stall: block the others would wait for it",
		Anchor: "order-stalled",
	})
}
