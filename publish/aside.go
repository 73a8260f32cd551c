package publish

import (
	"errors"
	"fmt"
	"sync"

	"github.com/walrelay/walrelay/event"
)

// held asks whether an earlier record of the item's key waits. It costs one call
// per record as long as no key is held.
func (p *Publisher) held(it *item) bool {
	return p.opts.Desk != nil && !it.loose && len(it.rec.Key) > 0 && p.opts.Desk.Held(it.ticket.Source, it.rec.Key)
}

// reconsider asks again: while a record waited, its key may have been held, or opened.
// A record that can never be sent is the policy's, whatever its key.
func (p *Publisher) reconsider(it *item) { it.waits = it.refused == nil && p.held(it) }

// putAside gives a record to the desk, for as long as it takes, and delivers its
// result. It answers false, and has not delivered it, when the record was to wait behind
// its key and that was opened meanwhile.
func (p *Publisher) putAside(l *lane, it *item, why error, reason string) (settled bool) {
	rec, source := it.record(), it.origin.Source
	troubled := false
	for attempt := 1; ; attempt++ {
		err := p.opts.Desk.Park(p.ctx, rec, it.ticket, why)
		if err != nil && it.waits {
			if p.reconsider(it); !it.waits {
				p.desk.end(p, source, troubled)
				return false
			}
		}
		switch {
		case err == nil:
			p.desk.end(p, source, troubled)
			if it.waits {
				p.obs.held(source, 1)
			} else {
				p.obs.parked(source, l.topic.name, reason)
			}
			p.settle(it, nil)
			return true
		case p.dead.Load():
			p.desk.end(p, source, troubled)
			p.settle(it, errClosed())
			return true
		case event.ClassOf(err) != event.Retry:
			p.desk.end(p, source, troubled)
			p.settle(it, p.stop(it.ticket.Source, notPutAside(it, why, err)))
			return true
		}
		p.desk.begin(p, source, troubled, err)
		troubled = true
		p.pause(backoff(attempt)) // once the publisher is closed, ctx answers
	}
}

// siftAtOnce bounds how long the other keys of a lane wait while records are put aside.
const siftAtOnce = 64

// sift puts aside what is to wait behind held keys, several records at a time, because
// nothing of the lane may be under way for it: an earlier record of the key that fails later
// would be put aside after them. For the same reason each key is asked about once: the
// first answer holds for all records of this pass, and none passes one that is refused.
func (r *repair) sift() {
	type question struct {
		source uint16
		key    string
	}
	answers := make(map[question]bool)
	all, put := r.todo, 0
	r.todo = all[:0]
	for i, it := range all {
		if it.refused != nil || put == siftAtOnce {
			r.todo = append(r.todo, all[i:]...)
			return
		}
		if it.loose || len(it.rec.Key) == 0 {
			r.todo = append(r.todo, it)
			continue
		}
		q := question{it.ticket.Source, string(it.rec.Key)}
		waits, asked := answers[q]
		if !asked {
			waits = r.p.held(it)
			answers[q] = waits
		}
		if it.waits = waits; !waits {
			r.todo = append(r.todo, it)
			continue
		}
		if !r.p.putAside(r.lane, it, event.ErrHeld, "") { // its key was opened: it keeps its place
			r.todo = append(r.todo, all[i:]...)
			return
		}
		put++
		if len(r.todo) < r.suspects {
			r.suspects--
		}
	}
}

// notPutAside is why the source of a record is stopped that the desk did not take.
func notPutAside(it *item, why, err error) *event.Error {
	c := event.ConditionOf(err)
	stop := &event.Error{
		Class: event.Halt, Fault: event.FaultPrecondition,
		What:   fmt.Sprintf("source %s is stopped by event %s, which could not be put aside (%v)", it.origin.Source, it.name(), why),
		Remedy: c.Remedy, Anchor: c.Anchor, Cause: err,
	}
	if e := (*event.Error)(nil); errors.As(err, &e) && e.Class == event.Halt && e.Fault != event.FaultOther {
		stop.Fault = e.Fault
	}
	setDefault(&stop.Remedy, "see the cause; then start the relay again")
	setDefault(&stop.Anchor, AnchorParking)
	return stop
}

// record is the item as the desk sees it: what Publish was given, and the item's own
// bytes. It is for calls that end before the item does.
func (it *item) record() *event.Record {
	rec := &event.Record{
		Topic: it.rec.Topic, Key: it.rec.Key, Value: it.rec.Value,
		Millis: it.millis, FallbackMillis: it.fallback,
		Hash: it.hash, Spread: it.spread, Loose: it.loose, Partial: it.partial, Origin: it.origin,
	}
	for _, h := range it.rec.Headers {
		rec.Headers = append(rec.Headers, event.Header{Key: h.Key, Value: h.Value})
	}
	return rec
}

// deskTroubles counts the lanes that wait for a source's desk; the condition stands
// until none does.
type deskTroubles struct {
	mu      sync.Mutex
	waiting map[string]int
}

func (d *deskTroubles) begin(p *Publisher, source string, already bool, err error) {
	c := event.ConditionOf(err)
	c.What = fmt.Sprintf("source %s: an event cannot be put aside, and its partition waits: %s", source, c.What)
	setDefault(&c.Remedy, "see whether the database answers and may be written to")
	setDefault(&c.Anchor, AnchorParking)
	d.mu.Lock()
	defer d.mu.Unlock()
	if !already {
		d.waiting[source]++
	}
	p.obs.condition("parking/"+source, c)
}

func (d *deskTroubles) end(p *Publisher, source string, troubled bool) {
	if !troubled {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting[source]--; d.waiting[source] == 0 {
		p.obs.condition("parking/"+source, event.Condition{})
	}
}
