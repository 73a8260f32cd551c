package outbox_test

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

// lanes is a relay.Publisher: each key has a lane, in order; it asks the desk as
// package publish does.
type lanes struct {
	b      *broker
	name   string
	desk   outbox.Desk
	result func(event.Ticket, error)
	delay  func() time.Duration
	dead   *atomic.Bool
	room   chan struct{}

	mu    sync.Mutex
	queue map[string][]laneItem
	wg    sync.WaitGroup
	stop  context.Context
	cut   context.CancelFunc
}

type laneItem struct {
	rec event.Record
	t   event.Ticket
	why error
}

func newLanes(b *broker, delay func() time.Duration, dead *atomic.Bool, room int) *lanes {
	l := &lanes{b: b, delay: delay, dead: dead, queue: map[string][]laneItem{}, room: make(chan struct{}, room)}
	l.stop, l.cut = context.WithCancel(context.Background())
	return l
}

func (l *lanes) Publish(ctx context.Context, rec *event.Record, t event.Ticket) error {
	return l.take(ctx, rec, t, nil)
}

func (l *lanes) Refuse(ctx context.Context, rec *event.Record, t event.Ticket, why error) error {
	return l.take(ctx, rec, t, why)
}

func (l *lanes) take(ctx context.Context, rec *event.Record, t event.Ticket, why error) error {
	select {
	case l.room <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	key := string(rec.Key)
	l.queue[key] = append(l.queue[key], laneItem{*rec, t, why})
	if len(l.queue[key]) == 1 {
		l.wg.Go(func() { l.work(key) })
	}
	return nil
}

func (l *lanes) work(key string) {
	for {
		l.mu.Lock()
		it := l.queue[key][0]
		l.mu.Unlock()
		err := l.one(&it)
		<-l.room
		l.result(it.t, err)
		l.mu.Lock()
		l.queue[key] = l.queue[key][1:]
		more := len(l.queue[key]) > 0
		l.mu.Unlock()
		if !more {
			return
		}
	}
}

var errClosing = &event.Error{Class: event.Retry, Fault: event.FaultUnacknowledged, What: "closed before acknowledgement"}

func (l *lanes) one(it *laneItem) error {
	id := string(it.rec.Origin.Row)
	if id == "" {
		id = string(it.rec.Origin.EventID)
	}
	l.wait(l.delay())
	l.b.mu.Lock()
	missing, poison := l.b.missing[it.rec.Topic], l.b.poison[id]
	l.b.mu.Unlock()
	switch {
	case l.stop.Err() != nil || l.dead.Load():
		return errClosing
	case !it.rec.Loose && len(it.rec.Key) > 0 && l.desk.Held(it.rec.Key):
		return l.park(it, event.ErrHeld)
	case missing:
		why := &event.Error{Class: event.Retry, What: "topic " + it.rec.Topic + " does not exist"}
		if l.desk.Return(&it.rec, it.t, why) {
			return why
		}
		return errClosing
	case poison || it.why != nil:
		return l.park(it, &event.Error{Class: event.Poison, What: "too large"})
	}
	l.b.mu.Lock()
	l.b.log = append(l.b.log, delivery{string(it.rec.Key), id, time.Now(), l.name})
	l.b.mu.Unlock()
	l.wait(l.delay())
	if l.dead.Load() {
		return errClosing
	}
	return nil
}

func (l *lanes) park(it *laneItem, why error) error {
	for l.stop.Err() == nil {
		err := l.desk.Park(l.stop, &it.rec, it.t, why)
		if err == nil {
			return nil
		}
		if event.ClassOf(err) != event.Retry {
			return err
		}
		l.wait(50 * time.Millisecond)
	}
	return errClosing
}

func (l *lanes) wait(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-l.stop.Done():
	}
}

func (l *lanes) Close(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		l.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		l.cut()
		<-done
	}
	l.cut()
	return nil
}

// rowRouter makes a record of a row: the topic is the route.
type rowRouter struct{ loose map[string]bool }

func (r rowRouter) Route(ev *event.Event, rec *event.Record, scratch []byte) ([]byte, error) {
	*rec = event.Record{
		Topic: string(ev.Fields[event.Route]), Key: ev.Fields[event.Key], Loose: r.loose[string(ev.Fields[event.Route])],
		Origin: event.Origin{
			Relation: ev.Relation, EventID: ev.Fields[event.EventID], Row: ev.Fields[event.RowID], Route: ev.Fields[event.Route],
		},
	}
	if len(rec.Key) == 0 {
		rec.Key = ev.Fields[event.EventID]
	}
	return scratch, nil
}
