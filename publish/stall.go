package publish

import (
	"fmt"
	"time"

	"github.com/walrelay/walrelay/event"
)

// unansweredFor is how long records may be under way before that is a reason for
// not being ready. franz-go tries again for ever and tells nobody.
const unansweredFor = 10 * time.Second

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
			p.obs.condition("stalled/"+t.name, event.Condition{
				What: fmt.Sprintf("topic %s: %d records to partition %d are not acknowledged for %s", t.name, worst.inflight.Load(), worst.part,
					now.Sub(worst.movedAt).Round(time.Second)),
				Remedy: "see whether the partition has a leader, and that broker's log and disk", Anchor: AnchorStalled,
			})
		case t.stalled:
			t.stalled = false
			p.obs.condition("stalled/"+t.name, event.Condition{})
		}
	}
}
