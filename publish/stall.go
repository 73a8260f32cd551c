package publish

import (
	"fmt"
	"time"

	"github.com/walrelay/walrelay/event"
)

// unansweredFor is how long records may be under way before that is a reason for
// not being ready. franz-go tries again for ever and tells nobody.
const unansweredFor = 10 * time.Second

// stall says what is known of a lane that is not answered.
func (t *topic) stall(l *lane, since time.Duration) event.Condition {
	c := event.Condition{
		What: fmt.Sprintf("topic %s: %d records to partition %d are not acknowledged for %s", t.name, l.inflight.Load(), l.part,
			since.Round(time.Second)),
		Remedy: "see whether the partition has a leader, and that broker's log and disk", Anchor: AnchorStalled,
	}
	lim, known := t.limits.Load(), false
	inSync := 0
	if lim != nil {
		inSync, known = t.inSync[l.part]
	}
	if known && inSync < lim.minISR {
		c.What += fmt.Sprintf(": %d replicas are in sync, min.insync.replicas asks for %d", inSync, lim.minISR)
		c.Remedy, c.Anchor = "bring the missing brokers back", AnchorReplicas
	}
	return c
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// lookForStalls finds partitions whose records are under way and are not
// acknowledged: the leader is gone, hangs, or has a full disk. It runs in the table's goroutine.
func (p *Publisher) lookForStalls(now time.Time) {
	for _, t := range *p.topics.Load() {
		sh := t.shape.Load()
		if sh == nil {
			sh = t.old
		}
		if sh == nil {
			continue
		}
		var worst *lane
		for _, l := range sh.lanes {
			if at := l.resolved.Load(); at != l.movedTo || l.inflight.Load() == 0 || l.movedAt.IsZero() {
				l.movedTo, l.movedAt = at, now
			} else if now.Sub(l.movedAt) >= unansweredFor && (worst == nil || l.movedAt.Before(worst.movedAt)) {
				worst = l
			}
		}
		switch {
		case worst != nil:
			t.stalled = true
			p.obs.condition("stalled/"+t.name, t.stall(worst, now.Sub(worst.movedAt)))
			t.next = minTime(t.next, now.Add(p.opts.MissingEvery)) // the reason may be in what the broker says of it
		case t.stalled:
			t.stalled = false
			p.obs.condition("stalled/"+t.name, event.Condition{})
		}
	}
}
