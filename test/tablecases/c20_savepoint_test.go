package tablecases

// C20 ROLLBACK TO SAVEPOINT inside a large streamed transaction.
// Source: Trendyol/go-pq-cdc#166.
// Ideal: exactly the 505 committed rows, in order, from the log and from the table
// alike; all of them are marked.

import (
	"context"
	"testing"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
)

func TestC20OnlyWhatASavepointKeptIsPublishedAndMarked(t *testing.T) {
	t.Parallel()
	for _, capture := range []string{"log", "poll"} {
		t.Run(capture, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, v pgserver.Version) {
				pg := pgserver.Start(t, pgserver.Options{Version: v, Settings: map[string]string{"logical_decoding_work_mem": "64kB"}})
				tb := newTable(t, pg, kafkaserver.Shared(t), 1)
				tb.poll("interval: 200ms")
				tb.Postgres = "capture: " + capture + "\n"
				tb.Init(t)
				r := startAll(t, tb.House)[0]
				savepoints(t, tb)
				tb.Exec(t, `do $$
					begin
						begin
							insert into public.outbox (id, event_id, outbox_route, event_type, occurred_at, payload, ordering_key)
							select gen_random_uuid(), gen_random_uuid(), 'orders', 'Tested', now(), '{"n": -1}', 'k' from generate_series(1, 500);
							raise division_by_zero;
						exception when division_by_zero then null;
						end;
					end $$`)
				tb.fill(t, 1, 1, 1)
				tb.published(t, soon)
				stopAll(t, r)
				if v := tb.judge(t, 0); v.Committed != 506 {
					t.Errorf("%d rows were committed, want 506", v.Committed)
				}
			})
		})
	}
}

// savepoints commits 505 rows of 300 bytes around 500 that are rolled back to a savepoint.
func savepoints(t *testing.T, tb *table) {
	t.Helper()
	const padded = `insert into public.outbox (id, event_id, outbox_route, event_type, status, occurred_at, created_at, payload, ordering_key)
		select ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, gen_random_uuid(), 'orders', 'Tested', 'pending', now(), now(),
		       jsonb_build_object('n', n, 'pad', repeat('x', 300)), 'key ' || n % 5
		from generate_series($1::bigint, $2::bigint) as n order by n`
	ctx := context.Background()
	tx, err := tb.PG.Conn(t, tb.Database).Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		sql      string
		from, to int
	}{{padded, 1, 500}, {"savepoint s", 0, 0}, {padded, 501, 1000}, {"rollback to savepoint s", 0, 0}, {padded, 1001, 1005}} {
		args := []any{step.from, step.to}
		if step.to == 0 {
			args = nil
		}
		if _, err := tx.Exec(ctx, step.sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	tb.n = 1005
}
