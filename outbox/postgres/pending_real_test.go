package postgres

import (
	"testing"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/pgserver"
)

func TestASnapshotOfRowsWithoutStatesLeavesOutWhatWaits(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		b := newHouse(t, srv, event.Basic, basicTable, nil)
		b.exec(`insert into public.outbox (id, aggregate_type, aggregate_id) select ('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid, 'r', 'k' || n % 3 from generate_series(1, 9) n`)
		got, at, err := b.Pending(b.ctx(), outbox.Request{Limit: 2, Held: []string{"k0", "k1"}})
		if err != nil || at.IsZero() {
			t.Fatalf("at %s: %v", at, err)
		}
		same(t, "pending", got, []string{id(2), id(5)})
	})
}
