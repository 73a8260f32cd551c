package cases

// C19 Foreign prefixes.
// Source: apache/flink-cdc#4387.
// Ideal: exact match only: 5 records; the others are skipped cheaply while the
// position advances.

import (
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

func TestC19ForeignPrefixesAreSkippedAndThePositionAdvances(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, v pgserver.Version) {
		k := kafkaserver.Shared(t)
		h := rig.NewHouse(t, pgserver.Shared(t, v), k.Brokers(), k.Topic(t, 3, nil))
		h.Postgres = "# no tables: messages alone\nmessages: [outbox]"
		h.Init(t)
		l := newLedger(h)
		l.transaction(t, func(x *txn) { x.emit("a") })
		for i := range 4 {
			// 25000 messages at a time, in many transactions and in one.
			h.Exec(t, `do $$ begin
				for i in 1..5000 loop
					perform pg_logical_emit_message(true, p, '{"event_id": "0198f3a0-0000-7000-8000-000000000009", "payload": 1}')
						from unnest(array['audit', 'outbox2', 'OUTBOX', 'out', '']) p;
					if i % 100 = 0 and `+[]string{"true", "false"}[i%2]+` then commit; end if;
				end loop;
			end $$`)
			l.transaction(t, func(x *txn) { x.emit("a") })
		}
		before := h.ReadSlot(t)
		r := h.Start(t)
		r.WaitReady(readyWithin)
		l.drained(t, 60*time.Second)
		if v := l.judge(t, k.Consume(t, h.Topic), 0); v.Records != 5 {
			t.Errorf("%d records, want 5", v.Records)
		}
		if n := r.Metric("walrelay_events_ignored_total", `reason="foreign_prefix"`); n != 100_000 {
			t.Errorf("%v foreign messages counted, want 100000", n)
		}
		// And with nothing of ours behind: the position follows all the same.
		h.Exec(t, `select pg_logical_emit_message(true, 'audit', repeat('x', 1000)) from generate_series(1, 5000)`)
		var end string
		if err := h.PG.Conn(t, h.Database).QueryRow(t.Context(), "select pg_current_wal_lsn()::text").Scan(&end); err != nil {
			t.Fatal(err)
		}
		rig.Eventually(t, "a position near the end of the log", 20*time.Second, func() error {
			now := parseLSN(t, h.ReadSlot(t).Confirmed)
			if parseLSN(t, end).Sub(now) > 1<<20 || now <= parseLSN(t, before.Confirmed) {
				return errNothingYet
			}
			return nil
		})
		stopsClean(t, r)
	})
}
