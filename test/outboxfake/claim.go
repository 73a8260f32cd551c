package outboxfake

import (
	"context"
	"slices"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

// Claim takes rows in table order.
func (t *Table) Claim(ctx context.Context, req outbox.Request) (*outbox.Claim, error) {
	if err := t.enter(ctx, "claim"); err != nil {
		return nil, err
	}
	defer t.linger("claim")
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	held, heads, loose, except, only := set(req.Held), set(req.Heads), set(req.Loose), set(req.Except), set(req.Only)
	c := &outbox.Claim{}
	var fence time.Time
	if t.Kind.Claims {
		c.Fence, fence = t.fence()
		if t.locks() {
			t.fences = append(t.fences, c.Fence)
		}
	}
	for _, r := range t.order {
		switch {
		case len(c.Rows) == req.Limit:
		case r.Status != Pending || r.Locked || r.Available.After(now) || !in(req.Shards, r) || except[r.ID]:
			continue
		case req.Only != nil && !only[r.ID]:
			continue
		case held[r.EffectiveKey()] && !loose[r.Route] && !heads[r.ID]:
			continue
		default:
			if t.Kind.Claims {
				r.Status, r.ProcessingAt = Processing, fence
				r.Fence = c.Fence
			}
			c.Rows = append(c.Rows, t.row(r))
		}
	}
	return c, t.leave("claim")
}

func (t *Table) row(r *Row) outbox.Row {
	ev := event.Event{Relation: t.Relation()}
	ev.Fields[event.RowID] = []byte(r.ID)
	ev.Fields[event.EventID] = []byte(r.EventID)
	ev.Fields[event.Route] = []byte(r.Route)
	if r.Key != "" {
		ev.Fields[event.Key] = []byte(r.Key)
	}
	return outbox.Row{Event: ev, ID: r.ID, Key: r.EffectiveKey(), Route: r.Route, Attempts: r.Attempts}
}

// Settle writes outcomes.
func (t *Table) Settle(ctx context.Context, outcomes []outbox.Outcome) (lost []int, err error) {
	if err := t.enter(ctx, "settle"); err != nil {
		return nil, err
	}
	defer t.linger("settle")
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	for i, o := range outcomes {
		r := t.rows[o.ID]
		ours := r != nil && (t.Kind.Claims && r.Status == Processing && r.Fence == o.Fence ||
			!t.Kind.Claims && r.Status == Pending)
		if !ours {
			lost = append(lost, i)
			continue
		}
		switch o.Verdict {
		case outbox.Published:
			r.Status, r.PublishedAt, r.Error = Published, now, ""
			t.marks[r.ID]++
		case outbox.Retry:
			r.Status, r.ProcessingAt, r.Attempts = Pending, time.Time{}, o.Attempts
			r.Available, r.Error = now.Add(o.Delay), o.Error
		case outbox.Failed:
			r.Status, r.Error = Failed, o.Error
		case outbox.Released:
			if r.free = t.locks(); !r.free {
				r.Status, r.ProcessingAt = Pending, time.Time{}
			}
		}
	}
	if t.locks() {
		t.unlock()
	}
	return lost, t.leave("settle")
}

// locks: a claim is an open transaction that locks its rows.
func (t *Table) locks() bool { return t.Kind.Claims && !t.Kind.Retries }

// Disconnect ends the process's transactions: what it has locked is free.
func (t *Table) Disconnect() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.order {
		if t.locks() && r.Status == Processing && slices.Contains(t.fences, r.Fence) {
			r.Status, r.ProcessingAt, r.free = Pending, time.Time{}, false
		}
	}
}

// unlock ends the transactions in which every row has its outcome.
func (t *Table) unlock() {
	open := map[outbox.Fence]bool{}
	for _, r := range t.order {
		if r.Status == Processing && !r.free {
			open[r.Fence] = true
		}
	}
	for _, r := range t.order {
		if r.Status == Processing && !open[r.Fence] {
			r.Status, r.ProcessingAt, r.free = Pending, time.Time{}, false
		}
	}
}
