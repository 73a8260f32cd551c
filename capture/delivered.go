package capture

import (
	"context"
	"maps"
	"sync"

	"github.com/google/uuid"

	"github.com/walrelay/walrelay/outbox"
)

// delivered remembers the rows that a catch-up published and deleted. The new
// slot's log brings some of them again, and the table cannot tell them from rows that
// were deleted by the transaction that wrote them. Rows that are marked stay, and need no memory.
//
// It lives as long as the process: a crash between the catch-up and the end of its overlap
// with the log repeats what the overlap holds.
type delivered struct {
	mu    sync.Mutex
	uuids map[uuid.UUID]struct{} // sixteen bytes instead of a string
	other map[string]struct{}
}

func newDelivered() *delivered {
	return &delivered{uuids: map[uuid.UUID]struct{}{}, other: map[string]struct{}{}}
}

func (d *delivered) add(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if u, err := uuid.Parse(id); err == nil && u.String() == id {
		d.uuids[u] = struct{}{}
		return
	}
	d.other[id] = struct{}{}
}

func (d *delivered) has(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if u, err := uuid.Parse(id); err == nil && u.String() == id {
		_, ok := d.uuids[u]
		return ok
	}
	_, ok := d.other[id]
	return ok
}

// noting is a table whose published rows are remembered, for the catch-up.
type noting struct {
	outbox.Table
	delivered *delivered
}

func (t *noting) Settle(ctx context.Context, outcomes []outbox.Outcome) (lost []int, err error) {
	lost, err = t.Table.Settle(ctx, outcomes)
	if err != nil {
		return lost, err
	}
	gone := map[int]bool{}
	for _, i := range lost {
		gone[i] = true
	}
	for i, o := range outcomes {
		if o.Verdict == outbox.Published && !gone[i] {
			t.delivered.add(o.ID)
		}
	}
	return lost, nil
}

// recalling is a table that is asked below the start line: it knows what the
// catch-up delivered, too.
type recalling struct {
	outbox.Table
	delivered *delivered
}

func (t *recalling) LookUp(ctx context.Context, ids []string) (map[string]bool, error) {
	found, err := t.Table.LookUp(ctx, ids)
	if err != nil {
		return nil, err
	}
	found = maps.Clone(found)
	if found == nil {
		found = map[string]bool{}
	}
	for _, id := range ids {
		if t.delivered.has(id) {
			found[id] = true
		}
	}
	return found, nil
}
