package order

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/hlc"
	"github.com/walrelay/walrelay/test/pgserver"
)

// Readings are taken as fast as they can be while eight sessions commit as fast as they can:
// a transaction that commits between any two steps of a reading must not be missed. Stamps
// come from one clock per session, after the begin, so that no bound of time has a share in it.
func TestReadingsBesideCommitsMissNoTransaction(t *testing.T) {
	t.Parallel()
	h, k := newHouse(t, pgserver.Shared(t, pgserver.V18), 3, byStamp, "transaction: 10m, staged: 50ms, clock_error: 0s, every: 10ms, late_header: true, on_source_stall: block")
	h.Init(t)
	r := h.Start(t)
	r.WaitReady(soon)
	const sessions, each = 8, 2500
	var writing sync.WaitGroup
	for s := range sessions {
		conn := h.PG.Conn(t, h.Database)
		stamps := clock(0)
		writing.Go(func() {
			for n := range each {
				if err := short(t.Context(), conn, stamps, s, n); err != nil {
					t.Errorf("session %d: %v", s, err)
					return
				}
			}
		})
	}
	writing.Wait()
	records := k.ConsumeN(t, sessions*each, 2*soon, h.Topic)
	if j := judge(t, records); j != (judgement{}) || len(records) != sessions*each {
		t.Errorf("%d records of %d, %+v; want none late, and each partition in the order of stamps", len(records), sessions*each, j)
	}
	stop(t, r)
}

// short is a transaction of one event; one in fifty lasts longer than order.staged,
// so that a reading that misses it lets others go before it.
func short(ctx context.Context, conn *pgx.Conn, stamps *hlc.Clock, s, n int) error {
	if _, err := conn.Exec(ctx, `begin`); err != nil {
		return err
	}
	var b pgx.Batch
	b.Queue(`insert into public.outbox (id, event_id, outbox_route, event_type, occurred_at, payload, ordering_key, hlc)
		values (gen_random_uuid(), gen_random_uuid(), 'orders', 'Tested', now(), '{}', $1, $2)`, fmt.Sprint("key ", (s+n)%50), int64(stamps.Now()))
	if n%50 == 49 {
		b.Queue(`select pg_sleep(0.06 + random() * 0.1)`)
	}
	b.Queue(`commit`)
	return conn.SendBatch(ctx, &b).Close()
}
