package outbox

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/walrelay/walrelay/event"
)

// wholeEvents hands out events that the store keeps whole and that may go again. They
// belong to no shard: who has the first one brings them. Rows of their keys wait
// meanwhile, everywhere, for the store lists the keys as held.
func (p *Poller) wholeEvents(ctx context.Context, view LeaseView) (*event.Batch, error) {
	if p.parking == nil || p.gear.Kind == GearCatchUp || view.Shards.Of > 0 && !slices.Contains(view.Shards.Own, 0) {
		return nil, nil
	}
	if p.gear.Kind == GearPoll && !p.turn.looked.After(p.turn.wholes) {
		return nil, nil
	}
	p.turn.wholes = p.turn.looked
	p.mu.Lock()
	before := slices.Collect(maps.Keys(p.wholes))
	p.mu.Unlock()
	events, err := p.parking.Whole(ctx, wholeLimit)
	if err != nil {
		return nil, fmt.Errorf("reading parked events that may go again: %w", err)
	}
	if len(events) == 0 {
		return nil, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	losses := p.leases.Losses()
	p.cutLocked(losses)
	if losses != view.Losses || p.closing {
		return nil, nil
	}
	for _, id := range before {
		if p.wholes[id] == nil { // it came back meanwhile: whether the answer knows, cannot be told
			p.turn.wholes = time.Time{}
			return nil, nil
		}
	}
	batch := &event.Batch{}
	mayGo := map[string]bool{}
	now := time.Now()
	for i := range events {
		w := &events[i]
		if p.wholes[w.ID] != nil || w.Record == nil {
			continue
		}
		if w.State == StateBehind && p.gear.Kind == GearSweep && w.Key != "" && !p.turn.bare[w.Key] {
			if h := p.ledger.keys[w.Key]; h != nil && h.under == 0 {
				h.wholes = 0 // one that came back waits too
			}
			continue // rows of the key go before
		}
		e := &entry{key: w.Key, route: w.Route, table: -1, whole: w, claimed: now, version: view.Version}
		if w.Key != "" {
			h := p.ledger.get(w.Key)
			may, known := mayGo[w.Key]
			if !known {
				may = h.under == 0 && !now.Before(h.due) && !h.parked && len(h.waiting) == 0
				mayGo[w.Key], h.wholes = may, 0
			}
			h.wholes++
			if !may {
				continue
			}
			h.under++
			h.losses, h.passing = losses, true
			if p.gear.Kind == GearSweep {
				p.turn.went[w.Key] = true
			}
			p.gate.Hold(w.Key)
		}
		p.count++
		p.versions[e.version]++
		p.wholes[w.ID] = e
		p.handLocked(batch, e, &event.Event{
			Prepared: w.Record, Relation: w.Relation, Commit: w.Commit, Ordinal: w.Ordinal,
		})
	}
	if len(batch.Events) == 0 {
		return nil, nil
	}
	batch.Memory = event.NewMemory(nil)
	return batch, nil
}
