package outbox

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/walrelay/walrelay/event"
)

const (
	// lookEvery is the longest time between two looks at what holds keys: what an operator
	// or a foreign poller did is noticed within it.
	lookEvery = 5 * time.Second
	// lookApart is the shortest.
	lookApart = 200 * time.Millisecond
	// unfinishedMost is how many rows that hold their key are read.
	unfinishedMost = 1_000_000
	wholeLimit     = 500
)

// look reads what holds keys: rows that wait for their next attempt or are in
// somebody's hands, and entries of the parking store. What changed here since it began
// is newer than what it read.
func (p *Poller) look(ctx context.Context, shards Shards) error {
	p.mu.Lock()
	stamp := p.ledger.stamp
	p.lookSoon = false
	mine := make([]map[string]bool, len(p.tables))
	for t := range p.tables {
		mine[t] = make(map[string]bool, len(p.under[t]))
		for id := range p.under[t] {
			mine[t][id] = true
		}
	}
	p.mu.Unlock()

	rows := make([][]Unfinished, len(p.tables))
	for t, table := range p.tables {
		if !p.traits[t].Retries {
			continue
		}
		for limit := 10_000; ; limit *= 10 {
			found, more, err := table.Unfinished(ctx, shards, limit)
			if err != nil {
				return fmt.Errorf("looking for unfinished rows of %s: %w", table.Relation(), err)
			}
			rows[t] = found
			if !more {
				break
			}
			if limit >= unfinishedMost {
				return tooManyUnfinished(table, limit)
			}
		}
	}
	var listed []HeldKey
	if p.parking != nil {
		var err error
		if listed, err = p.parking.Held(ctx); err != nil {
			return fmt.Errorf("reading the held keys: %w", err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.takeInLocked(rows, listed, mine, stamp)
	return nil
}

func tooManyUnfinished(t Table, limit int) error {
	return &event.Error{
		Class: event.Halt, Fault: event.FaultPrecondition, Anchor: AnchorHeldKeys,
		What:   fmt.Sprintf("more than %d rows of %s are in work or wait for another attempt: their keys cannot all be held", limit, t.Relation()),
		Remedy: "let the poller that works on them finish, or requeue them",
	}
}

// takeInLocked makes the ledger say what was read, except for what is newer in it.
func (p *Poller) takeInLocked(rows [][]Unfinished, listed []HeldKey, mine []map[string]bool, stamp uint64) {
	now := time.Now()
	old := make(map[string][]waiter) // as it was, by key
	was := make(map[rowRef]waiter)
	newer := make(map[rowRef]bool) // what is known here is newer than what was read
	for key, h := range p.ledger.keys {
		old[key] = h.waiting
		for _, w := range h.waiting {
			was[w.ref()] = w
			newer[w.ref()] = w.memory || w.stamp > stamp || p.under[w.table][w.id] != nil
		}
		h.waiting = nil
		if h.stamp <= stamp {
			h.listed, h.parked, h.behind, h.heads = false, false, false, nil
		}
	}
	// The order is the table's, also for what is known better here: it was listed too.
	for t := range rows {
		for _, r := range rows[t] {
			ref := rowRef{t, r.ID}
			before, known := was[ref]
			w := waiter{id: r.ID, table: t, processing: r.Processing, due: now.Add(p.opt.Interval)}
			switch {
			case newer[ref]:
				w = before
				newer[ref] = false
			case p.isLooseLocked(r.Route) || mine[t][r.ID] || p.under[t][r.ID] != nil:
				continue
			case r.Due:
				w.due = now
			case known && !before.processing:
				w.due = before.due
			}
			h := p.ledger.get(r.Key)
			h.waiting = append(h.waiting, w)
		}
	}
	for key, list := range old {
		for _, w := range list {
			if newer[w.ref()] {
				h := p.ledger.get(key)
				h.waiting = append(h.waiting, w)
			}
		}
	}
	for _, k := range listed {
		if h := p.ledger.get(k.Key); h.stamp <= stamp {
			h.listed, h.parked, h.heads = true, k.Parked, k.Heads
			if k.Behind && p.gear.Kind == GearSweep {
				h.listed, h.behind = false, true // its rows may go, past the gate
			}
		}
	}
	for key, h := range maps.All(p.ledger.keys) {
		if h.held() || h.behind {
			p.gate.Hold(key)
		}
		p.ledger.tidy(key)
	}
	if p.gear.Kind != GearSweep {
		for _, key := range p.gate.Keys() {
			p.openLocked(key)
		}
	}
	if p.obs.HeldKeys != nil {
		p.obs.HeldKeys(p.gate.Len())
	}
}

// rowRef names a row of one of the tables.
type rowRef struct {
	table int
	id    string
}

func (w *waiter) ref() rowRef { return rowRef{w.table, w.id} }

// reclaim gives abandoned claims back: of the shards' dead holders at once, others
// when they are old enough.
func (p *Poller) reclaim(ctx context.Context, view LeaseView, general bool) error {
	const limit = 1_000
	total := 0
	for t, table := range p.tables {
		if !p.traits[t].Claims || !p.traits[t].Retries {
			continue
		}
		for _, req := range p.reclaims(view, general) {
			req.Limit = limit
			p.mu.Lock()
			req.Except = p.underWayLocked(t)
			p.mu.Unlock()
			for n := limit; n == limit; {
				var err error
				if n, err = table.Reclaim(ctx, req); err != nil {
					return fmt.Errorf("reclaiming rows of %s: %w", table.Relation(), err)
				}
				total += n
			}
		}
	}
	p.leases.TenuresDone(view.Tenures)
	p.turn.doubt = false
	if total > 0 {
		p.mu.Lock()
		p.lookSoon = true
		p.mu.Unlock()
		if p.obs.Reclaimed != nil {
			p.obs.Reclaimed(total)
		}
	}
	return nil
}

func (p *Poller) reclaims(view LeaseView, general bool) (list []Reclaim) {
	if len(view.Tenures) > 0 {
		// Also those of shards that are to be given back: they are ours until then.
		shards := Shards{Of: view.Shards.Of, Holder: view.Shards.Holder}
		for _, t := range view.Tenures {
			if !slices.Contains(shards.Own, t.Shard) {
				shards.Own = append(shards.Own, t.Shard)
			}
		}
		list = append(list, Reclaim{Shards: shards, Tenures: view.Tenures})
	}
	if general {
		list = append(list, Reclaim{Shards: view.Shards, OlderThan: p.opt.ReclaimAfter})
	}
	if p.turn.doubt && p.turn.fence != "" && view.Shards.Of > 0 {
		// Whatever was claimed in our shards since the last claim that was answered, and
		// is not under way here: the claim whose answer was lost.
		r := Reclaim{Shards: view.Shards}
		for _, shard := range view.Shards.Own {
			r.Tenures = append(r.Tenures, Tenure{Shard: shard, From: string(p.turn.fence), Until: "infinity"})
		}
		list = append(list, r)
	}
	return list
}
