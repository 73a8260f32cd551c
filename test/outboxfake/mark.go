package outboxfake

import (
	"context"

	"github.com/walrelay/walrelay/outbox"
)

// Mark writes the outcome of events that the log brought.
func (t *Table) Mark(ctx context.Context, marks []outbox.Mark) (m outbox.Marked, err error) {
	if err := t.enter(ctx, "mark"); err != nil {
		return m, err
	}
	defer t.linger("mark")
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range marks {
		switch r := t.rows[k.ID]; {
		case r == nil:
			m.Absent++
			continue
		case r.Status == Pending:
			m.Pending++
			t.mark(r, k)
		case r.Status == Processing:
			m.Foreign++
			t.mark(r, k)
		default:
			m.Settled++
		}
	}
	return m, t.leave("mark")
}

func (t *Table) mark(r *Row, k outbox.Mark) {
	if r.Status, r.Error = Published, ""; k.Error != "" && t.Kind.Retries {
		r.Status, r.Error = Failed, k.Error
	}
	t.marks[r.ID]++
}

// LookUp answers which ids are not pending any more.
func (t *Table) LookUp(ctx context.Context, ids []string) (map[string]bool, error) {
	if err := t.enter(ctx, "lookup"); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	done := map[string]bool{}
	for _, id := range ids {
		if r := t.rows[id]; r != nil && r.Status != Pending {
			done[id] = true
		}
	}
	return done, t.leave("lookup")
}
