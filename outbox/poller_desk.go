package outbox

import (
	"context"
	"errors"

	"github.com/walrelay/walrelay/event"
)

// Held reports whether a row of the key that is under way must stay behind. A head of
// a held key passes; so the answer is not the gate's alone.
func (p *Poller) Held(key []byte) bool {
	losses := p.leases.Losses()
	shared := p.gear.Kind == GearSweep // with the log
	if p.blocked.Load() == 0 && losses == p.losses.Load() && (!shared || p.gate.Len() == 0) {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.ledger.keys[string(key)]
	if h == nil || h.under == 0 {
		return shared && p.gate.Held(key)
	}
	return h.blocked || h.losses != losses || shared && !h.passing && p.gate.Held(key)
}

// Park puts a row aside. Its key is held before the store is asked, so that nothing
// passes meanwhile.
func (p *Poller) Park(ctx context.Context, rec *event.Record, t event.Ticket, why error) error {
	p.mu.Lock()
	e := p.waiting.get(t.Entry)
	if e == nil {
		p.mu.Unlock()
		return errors.New("an event was to be parked that is not under way")
	}
	var h *keyState
	if e.key != "" {
		h = p.ledger.get(e.key)
		p.blockLocked(h)
	}
	if errors.Is(why, event.ErrHeld) {
		e.remark = asideBehind
		p.mu.Unlock()
		return nil
	}
	if p.parking == nil {
		p.mu.Unlock()
		return errNoParking
	}
	if h != nil {
		p.ledger.park(h)
		p.holdLocked(e.key)
	}
	parked := e.parked(rec, why)
	p.mu.Unlock()
	if err := p.parking.Park(ctx, parked); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	e.remark = asideParked
	if h != nil {
		p.ledger.park(h) // once more: a look at the store may have begun before it was there
	}
	return nil
}

// Lettered notes that a dead letter took the row's place: it fails.
func (p *Poller) Lettered(_ *event.Record, t event.Ticket, why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.waiting.get(t.Entry); e != nil {
		e.remark, e.why = asideLettered, "dead-lettered: "+why.Error()
	}
}

// Return takes a row back whose topic is missing: it will be tried again later, and
// what comes after it in its key stays behind.
func (p *Poller) Return(rec *event.Record, t event.Ticket, why error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.waiting.get(t.Entry)
	if e == nil {
		return false
	}
	e.remark = asideReturned
	if e.key == "" {
		e.keepForParking(rec, why)
		return true
	}
	h := p.ledger.get(e.key)
	if h.blocked || h.losses != p.leases.Losses() {
		e.remark = asideBehind
	} else {
		e.keepForParking(rec, why)
	}
	p.blockLocked(h)
	p.holdLocked(e.key)
	return true
}

// keepForParking notes what the store will need, should the row be given up.
func (e *entry) keepForParking(rec *event.Record, why error) {
	parked := e.parked(rec, why)
	e.aside = &parked
}

// parked describes the entry's event for the store.
func (e *entry) parked(rec *event.Record, why error) Parked {
	p := parkedOf(rec, why)
	if e.whole != nil {
		was := *e.whole
		was.State, was.Reason, was.Error, was.Record = StateParked, p.Reason, p.Error, rec
		return was
	}
	p.Key = e.key
	return p
}

// blockLocked makes the rows of a key that are under way stay behind.
func (p *Poller) blockLocked(h *keyState) {
	p.ledger.block(h)
	p.blocked.Store(int64(p.ledger.blocked))
}

func (p *Poller) holdLocked(key string) {
	p.gate.Hold(key)
	if p.obs.HeldKeys != nil {
		p.obs.HeldKeys(p.gate.Len())
	}
}
