package cases

// C01 Quiet outbox next to a busy table.
// Source: risingwavelabs/risingwave#16697, redpanda-data/connect#3198,
// PeerDB-io/peerdb#462, psycopg/psycopg2#780.
// Ideal: retained WAL returns below 64 MB within two status intervals while the
// outbox stays silent, and nobody writes to the outbox for it.
//
// The report wrote 2 GB; 256 MB in each place prove the same against a bound of 64.

import (
	"fmt"
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

func TestC01QuietOutboxNeverHoldsBackTheLogOfOthers(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, v pgserver.Version) {
		// A server of its own: other tests' log would blur the figures.
		pg := pgserver.Start(t, pgserver.Options{Version: v})
		k := kafkaserver.Shared(t)
		h := rig.NewHouse(t, pg, k.Brokers(), k.Topic(t, 3, nil))
		h.Postgres = "check_interval: 10s" // the default, as an operator has it
		h.Init(t)
		neighbour := pg.NewDatabase(t)
		l := newLedger(h)
		r := h.Start(t)
		r.WaitReady(readyWithin)
		l.write(t, "a")
		k.ConsumeN(t, 1, 30*time.Second, h.Topic)
		for _, database := range []string{h.Database, neighbour} {
			pg.ExecIn(t, database, "create table busy (x text)")
			before := h.ReadSlot(t)
			// In pieces, as traffic comes; 1 KiB a row, which Postgres does not compress.
			for range 8 {
				pg.ExecIn(t, database, "insert into busy select repeat(md5(random()::text), 32) from generate_series(1, 32768)")
			}
			after := h.ReadSlot(t)
			if written := parseLSN(t, after.Restart).Sub(parseLSN(t, before.Restart)) + uint64(after.Retained); written < 256<<20 {
				t.Fatalf("%d MiB of log were written, want 256: the test tests nothing", written>>20)
			}
			// Postgres moves the restart place only from one list of running transactions in
			// its log to the next. It writes one every 15 s, and at each checkpoint.
			pg.Exec(t, "checkpoint")
			pg.Exec(t, "checkpoint")
			// Two status intervals of 10 s, the default.
			rig.Eventually(t, "a retained log below 64 MB", 20*time.Second, func() error {
				if s := h.ReadSlot(t); s.Retained >= 64_000_000 {
					return fmt.Errorf("%d MB are retained, restart %s, confirmed %s", s.Retained/1_000_000, s.Restart, s.Confirmed)
				}
				return nil
			})
		}
		// Nothing but the one event, in the table and in the topic.
		var rows int
		if err := pg.Conn(t, h.Database).QueryRow(t.Context(), "select count(*) from public.outbox").Scan(&rows); err != nil || rows != 1 {
			t.Errorf("the outbox holds %d rows (%v), want the one that the application wrote", rows, err)
		}
		l.judge(t, k.Consume(t, h.Topic), 0)
		l.write(t, "a")
		l.drained(t, 30*time.Second)
		l.judge(t, k.Consume(t, h.Topic), 0)
		stopsClean(t, r)
	})
}
