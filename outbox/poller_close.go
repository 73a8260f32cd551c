package outbox

import "time"

// closeEntryLocked ends the life of an entry: its outcome is written, or was lost.
// What it leaves behind is what the ledger knows of its key.
func (p *Poller) closeEntryLocked(e *entry, lost bool, now time.Time) {
	if e.whole != nil {
		delete(p.wholes, e.whole.ID)
	} else {
		delete(p.under[e.table], e.id)
	}
	over := p.over(e)
	if over {
		if len(p.tried) > 0 {
			delete(p.tried, e.name())
		}
		if p.gate.Len() > 0 {
			p.gate.Delivered(e.key, e.gateID())
		}
	}
	h := e.state
	if h == nil {
		h = p.ledger.keys[e.key]
	}
	if h == nil { // it holds nothing back
		if e.delay > 0 && e.whole == nil {
			p.resting[e.table][e.id] = now.Add(e.delay)
		}
		p.again = p.again || !over && e.delay == 0
		return
	}
	stood := h.held() || h.blocked || h.shut
	switch {
	case e.whole != nil:
		p.closeWholeLocked(e, h, now)
	case e.verdict == giveUp:
		p.ledger.done(h, e.id)
		p.ledger.park(h)
	case e.delay > 0:
		p.ledger.wait(h, waiter{id: e.id, table: e.table, due: now.Add(e.delay), memory: true, fence: e.fence})
	case e.verdict == owed && e.outcome.Verdict == Retry:
		delay := e.outcome.Delay
		if lost {
			delay = p.opt.Interval
		}
		p.ledger.wait(h, waiter{id: e.id, table: e.table, due: now.Add(delay)})
	case over:
		p.ledger.done(h, e.id)
	}
	if h.listed && !h.parked && len(h.heads) == 0 && over {
		p.lookSoon = true // the store may have nothing against the key any more
	}
	p.again = p.again || !over && !h.held()
	if p.ledger.back(e.key, h) && stood {
		p.thirsty = true // it is the turn of others of the key, now or at a time to be reckoned
	}
	p.blocked.Store(int64(p.ledger.blocked))
	if p.gear.Kind != GearSweep {
		p.openLocked(e.key)
	}
}

// over says that the event is delivered, or given up for good.
func (p *Poller) over(e *entry) bool {
	switch e.verdict {
	case forget, giveUp, nothingOwed:
		return true
	case owed:
		return e.outcome.Verdict == Published || e.outcome.Verdict == Failed
	}
	return false
}

func (p *Poller) closeWholeLocked(e *entry, h *keyState, now time.Time) {
	if e.verdict == keep {
		if e.delay > 0 {
			h.due = now.Add(e.delay)
		}
		return
	}
	h.due = time.Time{}
	if h.wholes > 0 {
		h.wholes--
	}
	if e.verdict == giveUp {
		p.ledger.park(h)
	}
	p.lookSoon = true
}

// openLocked opens the gate for a key that nothing holds any more.
func (p *Poller) openLocked(key string) {
	if p.gate.Len() == 0 {
		return
	}
	if h := p.ledger.keys[key]; h != nil && (h.held() || h.blocked) {
		return
	}
	p.gate.Open(key)
	if p.obs.HeldKeys != nil {
		p.obs.HeldKeys(p.gate.Len())
	}
}

func (p *Poller) leaveVersionLocked(v uint64, n int) {
	if p.versions[v] -= n; p.versions[v] <= 0 {
		delete(p.versions, v)
	}
}
