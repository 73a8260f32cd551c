package forze

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

// script decides what a broker does with a record. n counts how often the row was offered, from
// 1. Nil: it is durable. A Retry error: its topic is missing, the desk is asked to take
// it back. A Poison error: the desk puts it aside. It may wait for whatever it likes, until ctx ends.
type script func(ctx context.Context, rec *event.Record, n int) error

// broker is a relay.Publisher that follows a script, one record after the other, and
// asks the desk as package publish does.
type broker struct {
	play   script
	desk   outbox.Desk
	result func(event.Ticket, error)

	mu      sync.Mutex
	offered map[string]int
	sent    []string // row ids that are durable, in order

	queue chan offer
	begin sync.Once
	ctx   context.Context
	cut   context.CancelFunc
	ended chan struct{}
}

type offer struct {
	rec event.Record
	t   event.Ticket
	why error
}

func newBroker(s script) *broker {
	b := &broker{play: s, offered: map[string]int{}, queue: make(chan offer, 10_000), ended: make(chan struct{})}
	b.ctx, b.cut = context.WithCancel(context.Background())
	return b
}

// acknowledge is the script of a broker without troubles.
func acknowledge(context.Context, *event.Record, int) error { return nil }

func (b *broker) Publish(ctx context.Context, rec *event.Record, t event.Ticket) error {
	return b.take(ctx, offer{*rec, t, nil})
}

func (b *broker) Refuse(ctx context.Context, rec *event.Record, t event.Ticket, why error) error {
	return b.take(ctx, offer{*rec, t, why})
}

func (b *broker) take(ctx context.Context, o offer) error {
	o.rec.Headers = slices.Clone(o.rec.Headers)
	b.begin.Do(func() { go b.work() })
	select {
	case b.queue <- o:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (b *broker) work() {
	defer close(b.ended)
	for o := range b.queue {
		b.result(o.t, b.one(&o))
	}
}

func (b *broker) one(o *offer) error {
	for b.ctx.Err() == nil && !o.rec.Loose && len(o.rec.Key) > 0 && b.desk.Held(o.rec.Key) {
		if b.desk.Park(b.ctx, &o.rec, o.t, event.ErrHeld) == nil {
			return nil
		}
	}
	id := string(o.rec.Origin.Row)
	b.mu.Lock()
	b.offered[id]++
	n := b.offered[id]
	b.mu.Unlock()
	err := o.why
	if err == nil && b.ctx.Err() == nil {
		err = b.play(b.ctx, &o.rec, n)
	}
	switch {
	case b.ctx.Err() != nil:
		return &event.Error{Class: event.Retry, Fault: event.FaultUnacknowledged, What: "closed before acknowledgement"}
	case err == nil:
		b.mu.Lock()
		defer b.mu.Unlock()
		b.sent = append(b.sent, id)
		return nil
	case event.ClassOf(err) == event.Poison:
		return b.desk.Park(b.ctx, &o.rec, o.t, err)
	case event.ClassOf(err) == event.Retry && !b.desk.Return(&o.rec, o.t, err):
		return errors.New("the desk did not take the row back")
	}
	return err
}

// Close lets the script end what was taken, as long as there is time.
func (b *broker) Close(ctx context.Context) error {
	b.begin.Do(func() { close(b.ended) })
	close(b.queue)
	select {
	case <-b.ended:
	case <-ctx.Done():
		b.cut()
		<-b.ended
	}
	b.cut()
	return nil
}

// deliveries are the rows that are durable, in order.
func (b *broker) deliveries() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.sent)
}

// offers is how often a row was offered.
func (b *broker) offers(id string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.offered[id]
}

func passing(what string) error { return &event.Error{Class: event.Retry, What: what} }
func poison(what string) error  { return &event.Error{Class: event.Poison, What: what} }
