package outboxfake

import (
	"context"
	"slices"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

// Parking is the parking store of a DB as one process sees it.
type Parking struct {
	*DB
	// Kind is the table's.
	Kind outbox.Traits
	// Before, when set, is asked before each statement; its error is the statement's.
	Before func(op string) error
}

func (p *Parking) enter(op string) error {
	if p.Before != nil {
		return p.Before(op)
	}
	return nil
}

func (p *Parking) find(x outbox.Parked) int {
	return slices.IndexFunc(p.parked, func(y outbox.Parked) bool {
		return x.Relation == y.Relation && x.Row == y.Row && x.EventID == y.EventID && x.Commit == y.Commit && x.Ordinal == y.Ordinal
	})
}

func (p *Parking) put(x outbox.Parked) {
	if i := p.find(x); i >= 0 {
		x.ID = p.parked[i].ID
		p.parked[i] = x
		return
	}
	p.nextID++
	x.ID, x.ParkedAt = p.nextID, time.Now()
	p.parked = append(p.parked, x)
}

// Park puts an event aside.
func (p *Parking) Park(_ context.Context, x outbox.Parked) error {
	if err := p.enter("park"); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	x.State = outbox.StateParked
	if r := p.rows[x.Row]; r != nil && p.Kind.Retries {
		r.Status, r.Error, x.Record = Failed, x.Error, nil
	}
	p.put(x)
	return nil
}

// LeaveBehind leaves a pending row as it is, unless an event is kept whole before it.
func (p *Parking) LeaveBehind(_ context.Context, x outbox.Parked) error {
	if err := p.enter("behind"); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.rows[x.Row]; r != nil && p.Kind.States && r.Status == Pending {
		if !slices.ContainsFunc(p.parked, func(y outbox.Parked) bool {
			return y.Key == x.Key && y.State == outbox.StateBehind && y.Record != nil
		}) {
			return nil
		}
		r.Status = Published
	}
	x.State = outbox.StateBehind
	p.put(x)
	return nil
}

// Held lists the held keys.
func (p *Parking) Held(context.Context) (list []outbox.HeldKey, err error) {
	if err := p.enter("held"); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.parked = slices.DeleteFunc(p.parked, func(x outbox.Parked) bool {
		r := p.rows[x.Row]
		return x.Row != "" && x.Record == nil && (r == nil || r.Status == Published)
	})
	for i := range p.parked {
		x := &p.parked[i]
		if r := p.rows[x.Row]; x.State == outbox.StateParked && x.Record == nil && r != nil && r.Status == Pending {
			x.State = outbox.StateRetrying
		}
		if x.Key == "" {
			continue
		}
		n := slices.IndexFunc(list, func(k outbox.HeldKey) bool { return k.Key == x.Key })
		if n < 0 {
			n = len(list)
			list = append(list, outbox.HeldKey{Key: x.Key, Behind: true})
		}
		list[n].Behind = list[n].Behind && x.State == outbox.StateBehind
		list[n].Parked = list[n].Parked || x.State == outbox.StateParked
		if x.State == outbox.StateRetrying && x.Record == nil {
			list[n].Heads = append(list[n].Heads, x.Row)
		}
	}
	return list, nil
}

// Whole gives whole events that may go again.
func (p *Parking) Whole(_ context.Context, limit int) (list []outbox.Parked, err error) {
	if err := p.enter("whole"); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.parked {
		blocked := x.State == outbox.StateBehind && slices.ContainsFunc(p.parked, func(y outbox.Parked) bool {
			return y.Key == x.Key && y.State == outbox.StateParked
		})
		if x.Record != nil && x.State != outbox.StateParked && !blocked && len(list) < limit {
			list = append(list, x)
		}
	}
	return list, nil
}

// Kept lists the events of the log that are kept whole.
func (p *Parking) Kept(context.Context) (list []outbox.Parked, err error) {
	if err := p.enter("kept"); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.parked {
		if x.Record != nil && !x.Commit.IsZero() {
			x.Record = nil
			list = append(list, x)
		}
	}
	return list, nil
}

// Done forgets entries.
func (p *Parking) Done(_ context.Context, ids []int64) error {
	if err := p.enter("done"); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.parked = slices.DeleteFunc(p.parked, func(x outbox.Parked) bool { return slices.Contains(ids, x.ID) })
	return nil
}

// List lists entries.
func (p *Parking) List(_ context.Context, f outbox.ParkedFilter) (list []outbox.Parked, err error) {
	if err := p.enter("list"); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.parked {
		if (f.Key == "" || f.Key == x.Key) && (f.Route == "" || f.Route == x.Route) && (f.EventID == "" || f.EventID == x.EventID) &&
			(f.State == "" || f.State == x.State) && x.ID > f.After && (f.Limit == 0 || len(list) < f.Limit) {
			list = append(list, x)
		}
	}
	return list, nil
}

// Show is one entry; nil when it is not there.
func (p *Parking) Show(_ context.Context, id int64) (*outbox.Parked, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.parked {
		if x.ID == id {
			return &x, nil
		}
	}
	return nil, &event.Error{Class: event.Poison, What: "no such entry"}
}

// Retry lets parked events go again.
func (p *Parking) Retry(_ context.Context, ids []int64) (n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.parked {
		x := &p.parked[i]
		if x.State != outbox.StateParked || !slices.Contains(ids, x.ID) {
			continue
		}
		x.State = outbox.StateRetrying
		if r := p.rows[x.Row]; r != nil && x.Record == nil {
			requeue(r)
		}
		n++
	}
	return n, nil
}

// Drop gives events up.
func (p *Parking) Drop(_ context.Context, ids []int64) (n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := len(p.parked)
	p.parked = slices.DeleteFunc(p.parked, func(x outbox.Parked) bool { return slices.Contains(ids, x.ID) })
	return before - len(p.parked), nil
}
