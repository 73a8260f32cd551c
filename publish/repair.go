package publish

import (
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/walrelay/walrelay/event"
)

// repair is a held lane's worker at work. Invariant: todo, then lane.queue, are
// the records of the lane in order, and nothing of the lane is inside franz-go
// when a step begins.
type repair struct {
	*lane
	p    *Publisher
	todo []*item
	// suspects counts the records at the head of todo of which at least one was
	// refused; the next batch is cut to batch records to find it.
	suspects, batch int
	sent            int // records of the last step
	attempts        int // in a row that failed for a reason outside the records
	troubled        bool
}

// work is the goroutine of a held lane. It ends by opening the lane, or with the publisher.
func (l *lane) work() {
	r := &repair{lane: l, p: l.topic.pub, batch: 1}
	for r.quiet() {
		if failed, cause := r.takeFailed(); len(failed) > 0 {
			if !r.judge(failed, cause) {
				break
			}
		} else if r.sent > 0 {
			r.passed()
		}
		if r.step() {
			return
		}
	}
	r.abandon()
}

// quiet waits until nothing of the lane is inside franz-go; false when the publisher is closed.
func (r *repair) quiet() bool {
	for r.inflight.Load() > 0 {
		select {
		case <-r.signal:
		case <-r.p.ctx.Done():
			return false
		}
	}
	return !r.p.dead.Load()
}

func (r *repair) takeFailed() ([]*item, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	failed, cause := r.failed, r.cause
	r.failed, r.cause = nil, nil
	r.broken.Store(false)
	return failed, cause
}

// judge decides what a failure calls for; false when the publisher is closed meanwhile.
func (r *repair) judge(failed []*item, cause error) bool {
	r.p.obs.retried(r.topic.name, len(failed))
	r.todo = append(failed, r.todo...)
	if collateral(cause) {
		r.suspects, r.batch = 0, 1 // the culprit was decided elsewhere
		return true
	}
	switch class, reason := classify(cause); class {
	case event.Poison:
		if len(failed) > 1 {
			r.suspects, r.batch = len(failed), len(failed)/2
			return true
		}
		r.suspects, r.batch = 0, 1
		if it := r.todo[0]; !errors.Is(cause, kerr.InvalidTimestamp) || !retime(it) {
			r.todo = r.todo[1:]
			return r.p.poisoned(r.lane, it, refusedByBroker(r.topic.name, it, cause), reason)
		}
		return true
	case event.Halt:
		c := r.p.explain("", cause)
		for _, it := range failed {
			err := r.p.stop(it.ticket.Source, &event.Error{
				Class: event.Halt, Fault: event.FaultPrecondition, What: c.What, Remedy: c.Remedy + "; then restart",
				Anchor: c.Anchor, Cause: cause,
			})
			r.p.settle(it, err)
		}
		r.todo = r.todo[len(failed):]
		return true
	default:
		r.suspects, r.batch = 0, 1
		if r.topic.shape.Load() != r.shape {
			r.handBack()
			return true
		}
		return r.wait(cause)
	}
}

// handBack lets the records of a retired lane wait for the topic's next shape: the
// partition may be gone for good. They were not written, and stay before all that
// waits for the topic already.
func (r *repair) handBack() {
	r.topic.mu.Lock()
	defer r.topic.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.topic.queue = slices.Concat(r.todo, r.queue, r.topic.queue)
	r.todo, r.queue = nil, nil
	if r.topic.missing.Load() {
		r.topic.queue = r.topic.offer(r.topic.queue)
	}
}

// wait makes the reason known and pauses before the next attempt.
func (r *repair) wait(cause error) bool {
	r.topic.trouble(!r.troubled, r.p.explain(r.topic.name, cause))
	r.troubled = true
	if errors.Is(cause, kerr.UnknownTopicID) && r.topic.purges.CompareAndSwap(r.purged, r.purged+1) {
		// Deleted and made again: franz-go sticks to the old topic until told to forget it.
		r.p.main.PurgeTopicsFromProducing(r.topic.name)
		r.p.wide.PurgeTopicsFromProducing(r.topic.name)
	}
	if refusedTopic(cause, false) && r.topic.missing.Load() {
		r.takeBack()
	}
	r.attempts++
	if !r.p.pause(backoff(r.attempts)) {
		return false
	}
	r.p.main.ForceMetadataRefresh()
	return true
}

// passed notes that all of the last step was acknowledged.
func (r *repair) passed() {
	r.suspects = max(0, r.suspects-r.sent)
	r.sent, r.attempts = 0, 0
	if r.troubled {
		r.troubled = false
		r.topic.recovered()
	}
}

// step sends the next records. After a success that leaves no suspect it sends
// everything and opens the lane; then it answers true and the worker is done.
func (r *repair) step() bool {
	r.purged = r.topic.purges.Load()
	r.sent = 0
	// With a reason to be careful, send a few and wait for their result.
	careful := r.suspects > 0 || r.troubled
	for {
		if len(r.todo) == 0 {
			if done, more := r.refill(careful); !more {
				return done
			}
		}
		it := r.todo[0]
		r.p.reconsider(it)
		alone := it.refused != nil || it.wide || it.waits
		switch err := r.p.stopReason(it.ticket.Source); {
		case r.p.dead.Load() || r.broken.Load():
			return false
		case err != nil:
			// Its source was stopped by an earlier record.
			r.todo = r.todo[1:]
			r.suspects = max(0, r.suspects-1)
			r.p.settle(it, err)
			continue
		case alone && r.inflight.Load() > 0, careful && r.sent == r.batch:
			return false
		case it.waits:
			r.sift()
			continue
		case it.refused != nil:
			r.todo = r.todo[1:]
			r.suspects = max(0, r.suspects-1)
			r.p.poisoned(r.lane, it, it.refused, reasonOf(it.refused))
			continue
		}
		r.todo = r.todo[1:]
		r.inflight.Add(1)
		r.sent++
		if it.wide {
			r.p.send(r.p.wide, r.lane, it)
			return false
		}
		r.p.send(r.p.main, r.lane, it)
	}
}

// refill takes over what has queued up meanwhile: more. When there is nothing, and
// nothing failed or is being watched, it opens the lane: done.
func (r *repair) refill(careful bool) (done, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) > 0 {
		r.todo, r.queue = r.queue, nil
		return false, true
	}
	if careful && r.sent > 0 || r.broken.Load() {
		return false, false
	}
	if r.troubled {
		r.topic.recovered()
	}
	r.held.Store(false)
	if r.topic.shape.Load() != r.shape {
		wake(r.p.wake)
	}
	return true, false
}

// abandon gives everything an error: the publisher is closed.
func (r *repair) abandon() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, list := range [][]*item{r.todo, r.failed, r.queue} {
		for _, it := range list {
			r.p.settle(it, errClosed())
		}
	}
	r.todo, r.failed, r.queue = nil, nil, nil
}
