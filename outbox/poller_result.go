package outbox

import (
	"errors"

	"github.com/walrelay/walrelay/event"
)

// Settle takes the result of the n-th row that was handed out. False: the feed is to
// stop with the error; the row stays claimed until Close releases it.
func (p *Poller) Settle(n uint64, err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil && event.ClassOf(err) != event.Retry {
		return false
	}
	e := p.waiting.take(n)
	if e == nil {
		return true
	}
	switch {
	case err == nil:
		p.comeBackLocked(e, p.succeeded(e))
	case e.remark == asideBehind || cutShort(err):
		p.comeBackLocked(e, e.verdictAtClose())
	default:
		p.comeBackLocked(e, p.failedLocked(e, err))
	}
	return true
}

// cutShort: the publisher was closed before it knew. The row goes again, here or elsewhere.
func cutShort(err error) bool {
	var e *event.Error
	return errors.As(err, &e) && e.Fault == event.FaultUnacknowledged
}

// comeBackLocked hands an entry to the settling goroutine.
func (p *Poller) comeBackLocked(e *entry, v verdict) {
	e.verdict = v
	p.done = append(p.done, e)
	signal(p.results)
}

// succeeded: the record is durable, or was put aside.
func (p *Poller) succeeded(e *entry) verdict {
	if e.whole != nil {
		switch e.remark {
		case asideBehind:
			return keep
		case asideParked:
			return nothingOwed
		}
		return forget
	}
	e.outcome = Outcome{ID: e.id, Verdict: Published}
	switch e.remark {
	case asideBehind:
		e.outcome.Verdict = Released
	case asideLettered:
		e.outcome.Verdict, e.outcome.Error = Failed, e.why
	case asideParked:
		// Where rows can fail, the store has seen to that. Otherwise the event is in the
		// store whole, and its row is done with.
		if p.traits[e.table].Retries {
			return nothingOwed
		}
	}
	return owed
}

// failedLocked counts an attempt, and decides whether it was the last.
func (p *Poller) failedLocked(e *entry, err error) verdict {
	if e.key != "" {
		p.blockLocked(p.ledger.get(e.key))
		p.holdLocked(e.key)
	}
	here := e.whole != nil || !p.traits[e.table].Retries // attempts are counted here alone
	attempts := e.attempts + 1
	if here {
		attempts = p.tried[e.name()] + 1
		p.tried[e.name()] = attempts
	}
	if attempts >= p.opt.Attempts {
		switch {
		case p.parking != nil && (e.aside != nil || !here) && (e.key != "" || here):
			if e.aside == nil {
				e.aside = &Parked{
					State: StateParked, Relation: p.tables[e.table].Relation(), Row: e.id, EventID: e.eventID(), Route: e.route, Key: e.key,
				}
			}
			e.aside.Reason, e.aside.Error = "attempts", err.Error()
			return giveUp
		case !here:
			e.outcome = Outcome{ID: e.id, Verdict: Failed, Error: err.Error()}
			return owed
		}
		// Neither the row nor a store can say that it was given up: it would be lost.
	}
	delay := Backoff(attempts, p.opt.BackoffMin, p.opt.BackoffMax)
	switch {
	case !here:
		e.outcome = Outcome{ID: e.id, Verdict: Retry, Attempts: attempts, Delay: delay, Error: err.Error()}
		return owed
	case e.whole != nil:
		e.delay = delay
		return keep
	}
	e.delay = delay
	e.outcome = Outcome{ID: e.id, Verdict: Released}
	return owed
}
