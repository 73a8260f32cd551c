package outboxfake

import (
	"context"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

// Unfinished lists rows that hold their key.
func (t *Table) Unfinished(ctx context.Context, shards outbox.Shards, limit int) (list []outbox.Unfinished, more bool, err error) {
	if err := t.enter(ctx, "unfinished"); err != nil {
		return nil, false, err
	}
	defer t.linger("unfinished")
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.order {
		waits := r.Status == Pending && r.Attempts > 0
		if !in(shards, r) || !waits && r.Status != Processing {
			continue
		}
		if len(list) == limit {
			return list, true, nil
		}
		list = append(list, outbox.Unfinished{
			ID: r.ID, Key: r.EffectiveKey(), Route: r.Route, Processing: r.Status == Processing,
			Due: r.Status == Pending && !r.Available.After(time.Now()),
		})
	}
	return list, false, t.leave("unfinished")
}

// Owed is what is neither published nor given up.
func (t *Table) Owed(ctx context.Context, each func(id string)) error {
	if err := t.enter(ctx, "owed"); err != nil {
		return err
	}
	defer t.linger("owed")
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.order {
		if r.Status == Pending || r.Status == Processing {
			each(r.ID)
		}
	}
	return t.leave("owed")
}

// Pending is a snapshot of what a claim would take, and then the end of the log.
func (t *Table) Pending(ctx context.Context, req outbox.Request) (ids []string, at event.Position, err error) {
	if err := t.enter(ctx, "pending"); err != nil {
		return nil, at, err
	}
	defer t.linger("pending")
	t.mu.Lock()
	defer t.mu.Unlock()
	held, heads, loose := set(req.Held), set(req.Heads), set(req.Loose)
	for _, r := range t.order {
		passed := held[r.EffectiveKey()] && !loose[r.Route] && !heads[r.ID]
		if r.Status == Pending && !r.Available.After(time.Now()) && in(req.Shards, r) && !passed && len(ids) < req.Limit {
			ids = append(ids, r.ID)
		}
	}
	return ids, event.AtLSN(t.end), t.leave("pending")
}
