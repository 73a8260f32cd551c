package outboxfake

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/walrelay/walrelay/outbox"
)

// Requeue makes failed rows pending again.
func (t *Table) Requeue(ctx context.Context, ids []string) (n int, err error) {
	if err := t.enter(ctx, "requeue"); err != nil {
		return 0, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range ids {
		if r := t.rows[id]; r != nil && r.Status == Failed {
			requeue(r)
			n++
		}
	}
	return n, t.leave("requeue")
}

func requeue(r *Row) {
	r.Status, r.Attempts, r.Error, r.Available = Pending, 0, "", time.Time{}
	r.ProcessingAt, r.PublishedAt = time.Time{}, time.Time{}
}

// Read gives published rows again.
func (t *Table) Read(ctx context.Context, f outbox.Filter) (*outbox.Claim, error) {
	if err := t.enter(ctx, "read"); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &outbox.Claim{}
	list := slices.Clone(t.order)
	slices.SortStableFunc(list, func(a, b *Row) int { return cmp.Compare(a.PublishedAt.UnixNano(), b.PublishedAt.UnixNano()) })
	after := f.After == ""
	for _, r := range list {
		switch {
		case r.Status != Published || f.EventID != "" && r.EventID != f.EventID || f.Route != "" && r.Route != f.Route:
		case !after:
			after = r.ID == f.After
		case len(c.Rows) < f.Limit:
			c.Rows = append(c.Rows, t.row(r))
		}
	}
	return c, t.leave("read")
}

// Figures are the gauges; the age of the oldest pending row is not kept here.
func (t *Table) Figures(ctx context.Context) (f outbox.Figures, err error) {
	if err := t.enter(ctx, "figures"); err != nil {
		return f, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.order {
		switch r.Status {
		case Pending:
			f.Pending++
			if r.Attempts > 0 {
				f.Retrying++
			}
		case Processing:
			f.Processing++
		case Failed:
			f.Failed++
		}
	}
	return f, t.leave("figures")
}

// Retain deletes published rows.
func (t *Table) Retain(ctx context.Context, keep time.Duration, batch int) (res outbox.Retained, err error) {
	if err := t.enter(ctx, "retain"); err != nil {
		return res, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range slices.Clone(t.order) {
		if r.Status == Published && time.Since(r.PublishedAt) > keep && res.Rows < int64(batch) {
			delete(t.rows, r.ID)
			t.order = slices.DeleteFunc(t.order, func(x *Row) bool { return x == r })
			res.Rows++
		}
	}
	return res, t.leave("retain")
}

// fence is a time that no other claim has.
