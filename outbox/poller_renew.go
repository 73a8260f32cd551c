package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/walrelay/walrelay/event"
)

// renewClaims tells the database that rows are still being worked at, before
// somebody takes their claims for abandoned: a slow broker must not cost a batch its claim.
func (p *Poller) renewClaims(ctx context.Context) {
	for t, traits := range p.traits {
		if !traits.Claims {
			continue
		}
		for fence, ids := range p.aged(t) {
			if err := p.renewSome(ctx, t, fence, ids); err != nil {
				p.warn("claims", event.Condition{
					What:   fmt.Sprintf("claims of rows that wait for the broker cannot be renewed: %v", err),
					Remedy: "after reclaim_after they count as abandoned and are published again; look at the database",
					Anchor: AnchorTable,
				})
				return
			}
		}
	}
	p.warn("claims", event.Condition{})
}

// aged lists the rows, by fence, whose claim is older than a third of what it may be.
func (p *Poller) aged(t int) map[Fence][]string {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	var aged map[Fence][]string
	for id, e := range p.under[t] {
		if e.lost || now.Sub(e.claimed) < p.opt.ReclaimAfter/3 {
			continue
		}
		if aged == nil {
			aged = map[Fence][]string{}
		}
		aged[e.fence] = append(aged[e.fence], id)
	}
	return aged
}

func (p *Poller) renewSome(ctx context.Context, t int, fence Fence, ids []string) error {
	call, cancel := context.WithTimeout(ctx, p.opt.ReclaimAfter/6)
	defer cancel()
	began := time.Now()
	renewed, held, err := p.tables[t].Renew(call, fence, ids)
	if err != nil {
		return err
	}
	still := make(map[string]bool, len(held))
	for _, id := range held {
		still[id] = true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ids {
		e := p.under[t][id]
		switch {
		case e == nil:
		case still[id]:
			e.fence, e.claimed = renewed, began
		default:
			// Somebody else has it, and will publish it. Its outcome will hit nothing.
			e.lost = true
			if e.key != "" {
				p.blockLocked(p.ledger.get(e.key))
			}
		}
	}
	return nil
}
