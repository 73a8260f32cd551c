package postgres

import (
	"testing"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/pgserver"
)

func TestASnapshotLeavesOutWhatWaitsBehindHeldKeys(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h := newHouse(t, srv, event.Forze, forzeTable, nil)
		h.insert(1, 9, 3) // keys k0, k1, k2 in turn
		got, at, err := h.Pending(h.ctx(), outbox.Request{Limit: 4, Held: []string{"k0", "k1"}, Heads: []string{id(4)}})
		if err != nil || at.IsZero() {
			t.Fatalf("at %s: %v", at, err)
		}
		same(t, "pending", got, []string{id(2), id(4), id(5), id(8)})
		got, _, err = h.Pending(h.ctx(), outbox.Request{Limit: 4, Shards: outbox.Shards{Of: 4}})
		if err != nil || len(got) > 0 {
			t.Fatalf("without a shard: %v %v", got, err)
		}

		b := newHouse(t, srv, event.Basic, basicTable, nil)
		b.exec(`insert into public.outbox (id, aggregate_type, aggregate_id) select ('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid, 'r', 'k' || n % 3 from generate_series(1, 9) n`)
		got, _, err = b.Pending(b.ctx(), outbox.Request{Limit: 2, Held: []string{"k0", "k1"}})
		if err != nil {
			t.Fatal(err)
		}
		same(t, "pending of basic", got, []string{id(2), id(5)})
	})
}

// A claim whose answer was lost is found by the fence of the one before it.
func TestAClaimIsFoundByWhenItWasMade(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h := newHouse(t, srv, event.Forze, forzeTable, nil)
		h.insert(1, 30, 10)
		all := outbox.Shards{Of: 2, Own: []int{0, 1}}
		first := h.claim(outbox.Request{Limit: 10, Shards: all})
		h.settle(outbox.Outcome{ID: first.Rows[0].ID, Fence: first.Fence, Verdict: outbox.Published})
		lost := h.claim(outbox.Request{Limit: 10, Shards: all})
		r := outbox.Reclaim{Shards: all, Limit: 100, Except: rowIDs(first)}
		for _, shard := range all.Own {
			r.Tenures = append(r.Tenures, outbox.Tenure{Shard: shard, From: string(first.Fence), Until: "infinity"})
		}
		n, err := h.Reclaim(h.ctx(), r)
		if err != nil || n != len(lost.Rows) {
			t.Fatalf("reclaimed %d of %d rows: %v", n, len(lost.Rows), err)
		}
		h.wantRow(11, "pending attempts=1 due")
		h.wantRow(2, "processing attempts=0 processing_at")
	})
}
