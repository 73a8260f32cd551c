package publish

import (
	"errors"
	"fmt"
	"time"

	"github.com/walrelay/walrelay/event"
)

// poisoned applies the policy to a record that can never be published as it is,
// and delivers its result. Nothing of the lane is under way. It answers false
// when the publisher is closed meanwhile.
func (p *Publisher) poisoned(l *lane, it *item, why error, reason string) bool {
	p.obs.refused(it.origin.Source, l.topic.name, reason)
	switch p.opts.OnPoison {
	case PoisonPark:
		p.putAside(l, it, &reasoned{why, reason}, reason)
		return !p.dead.Load()
	case PoisonDLQ:
		err := p.deadLetter(l.topic, it, why)
		switch {
		case err == nil:
			p.obs.deadLettered(l.topic.name)
			if p.opts.Desk != nil {
				p.opts.Desk.Lettered(it.record(), it.ticket, why)
			}
			p.settle(it, nil)
			return true
		case errors.Is(err, ErrClosed):
			p.settle(it, errClosed())
			return false
		}
		why = fmt.Errorf("%w; and dead-letter topic %s refused it: %w", why, p.opts.DLQTopic, err)
	}
	err := p.stop(it.ticket.Source, &event.Error{
		Class: event.Halt, Fault: event.FaultPrecondition,
		What:   fmt.Sprintf("source %s is stopped by event %s", it.origin.Source, it.name()),
		Remedy: "make room for it (raise the topic's limit, correct the route) or set kafka.on_poison: park or dlq, then start the relay again",
		Anchor: AnchorPoison, Cause: why,
	})
	p.settle(it, err)
	return true
}

// stop takes nothing more from a source. It returns err.
func (p *Publisher) stop(source uint16, err *event.Error) *event.Error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped[source] == nil {
		later := *err
		later.What += "; this later event was not sent"
		later.Cause = fmt.Errorf("%w: %w", ErrStopped, err.Cause)
		p.stopped[source] = &later
		p.anyStopped.Store(true)
	}
	return err
}

// stopReason is why nothing is taken from a source; nil when it goes on.
func (p *Publisher) stopReason(source uint16) error {
	if !p.anyStopped.Load() {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.stopped[source]; err != nil {
		return err
	}
	return nil
}

// reasoned carries the word by which a refusal is counted; package outbox looks for it.
type reasoned struct {
	error
	reason string
}

func (r *reasoned) Reason() string { return r.reason }

func (r *reasoned) Unwrap() error { return r.error }

// retime replaces a timestamp that the broker refused; false when nothing is left to try.
func retime(it *item) bool {
	it.retimed++
	switch fallback := time.UnixMilli(it.fallback); {
	case it.retimed == 1 && !it.rec.Timestamp.Equal(fallback):
		it.rec.Timestamp = fallback
	case it.retimed <= 2:
		it.retimed = 2
		it.rec.Timestamp = time.Now()
	default:
		return false
	}
	return true
}

// name tells people which event it is.
func (it *item) name() string {
	o := &it.origin
	return fmt.Sprintf("%s of %s at %s/%d", o.EventID, o.Relation, o.Commit, o.Ordinal)
}

// oversize is a record that its topic does not take.
type oversize struct{ size, limit int64 }

func (o *oversize) Error() string {
	return fmt.Sprintf("its record has %d bytes, the limit is %d", o.size, o.limit)
}

func tooLarge(topic string, it *item, size, limit int64) *event.Error {
	return &event.Error{
		Class: event.Poison, What: fmt.Sprintf("event %s is too large for topic %s", it.name(), topic),
		Anchor: AnchorPoison, Cause: &oversize{size, limit},
	}
}

func illegalTopic(name string) *event.Error {
	return &event.Error{
		Class: event.Poison, What: fmt.Sprintf("topic name %q is not legal: want 1 to 249 letters, digits, dots, underscores or hyphens", name),
		Anchor: AnchorPoison,
	}
}

func refusedByBroker(topic string, it *item, cause error) *event.Error {
	return &event.Error{
		Class: event.Poison,
		What: fmt.Sprintf("event %s, a record of %d bytes with timestamp %s, is refused by topic %s", it.name(), batchSize(&it.rec),
			it.rec.Timestamp.UTC().Format(time.RFC3339), topic),
		Anchor: AnchorPoison, Cause: cause,
	}
}

// reasonOf is the word by which refusals are counted.
func reasonOf(err error) string {
	var o *oversize
	if errors.As(err, &o) {
		return "too_large"
	}
	return "refused"
}
