package cases

// C11 TRUNCATE of the outbox, or of a neighbour.
// Source: supabase/etl#99, estuary/connectors#285 and #855, DBZ-1576,
// lukashes/outboxx#89.
// Ideal: rows committed before the truncate are delivered; the truncate yields
// one log line and no record; the slot advances.

import (
	"strings"
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

func TestC11TruncateLosesNoRowBeforeItAndMakesNoRecord(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, v pgserver.Version) {
		k := kafkaserver.Shared(t)
		h := rig.NewHouse(t, pgserver.Shared(t, v), k.Brokers(), k.Topic(t, 3, nil))
		h.Exec(t, "create table neighbour (id int primary key)")
		h.Exec(t, outboxTable())
		h.Exec(t, "create publication "+h.Publication+" for all tables")
		h.Init(t)
		l := newLedger(h)
		truncate := func() {
			h.Exec(t, "insert into neighbour values (1); truncate neighbour")
			l.write(t, "a", "b")
			h.Exec(t, "truncate public.outbox")
			l.transaction(t, func(x *txn) { // both in one transaction, and a row between
				x.write("a")
				x.exec("truncate public.outbox, neighbour")
				x.write("a", "c")
			})
			h.Exec(t, "truncate public.outbox")
		}
		truncate() // with the relay stopped
		r := h.Start(t)
		r.WaitReady(readyWithin)
		l.drained(t, 30*time.Second)
		stopped := l.judge(t, k.Consume(t, h.Topic), 0)
		truncate() // with the relay running
		l.drained(t, 30*time.Second)
		if v := l.judge(t, k.Consume(t, h.Topic), 0); v.Records != 2*stopped.Records {
			t.Errorf("%d records, want %d", v.Records, 2*stopped.Records)
		}
		if n := r.Metric("walrelay_events_ignored_total", `reason="truncate"`); n != 8 {
			t.Errorf("%v truncates counted, want 8", n)
		}
		// The operator hears of it, and not of each one again and again.
		if n := strings.Count(r.Log(), "truncate passed by"); n < 1 || n > 8 {
			t.Errorf("%d lines of the log speak of a truncate, want one or one each", n)
		}
		stopsClean(t, r)
	})
}
