package outboxfake

import (
	"context"
	"time"

	"github.com/walrelay/walrelay/outbox"
)

// Renew puts claims under a new fence.
func (t *Table) Renew(ctx context.Context, fence outbox.Fence, ids []string) (outbox.Fence, []string, error) {
	if err := t.enter(ctx, "renew"); err != nil {
		return "", nil, err
	}
	defer t.linger("renew")
	t.mu.Lock()
	defer t.mu.Unlock()
	renewed, now := t.fence()
	var held []string
	for _, id := range ids {
		if r := t.rows[id]; r != nil && r.Status == Processing && r.Fence == fence {
			r.ProcessingAt = now
			r.Fence = renewed
			held = append(held, id)
		}
	}
	return renewed, held, t.leave("renew")
}

// Reclaim gives stale claims back.
func (t *Table) Reclaim(ctx context.Context, req outbox.Reclaim) (n int, err error) {
	if err := t.enter(ctx, "reclaim"); err != nil {
		return 0, err
	}
	defer t.linger("reclaim")
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	except := set(req.Except)
	for _, r := range t.order {
		if r.Status != Processing || !in(req.Shards, r) || except[r.ID] || n == req.Limit {
			continue
		}
		stale := req.OlderThan > 0 && now.Sub(r.ProcessingAt) > req.OlderThan
		for _, ten := range req.Tenures {
			from, until := parse(ten.From), parse(ten.Until)
			stale = stale || req.Shards.Of > 0 && Shard(r.EffectiveKey(), req.Shards.Of) == ten.Shard &&
				!r.ProcessingAt.Before(from) && !r.ProcessingAt.After(until)
		}
		if stale {
			r.Status, r.ProcessingAt, r.Available = Pending, time.Time{}, now
			r.Attempts++
			n++
		}
	}
	return n, t.leave("reclaim")
}
