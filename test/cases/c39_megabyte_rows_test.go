package cases

// C39 Record-count buffer with megabyte records
//
// Source: grafana/mimir#8703, twmb/franz-go#1191, #1194 and #726.
//
// Ideal: what is in flight is bounded by bytes, so rows of 900 kB behind a slow
// broker do not fill the memory; it goes on at the broker's rate; a full window
// does not starve the status replies.
//
// Shortened: 40 s at 1 MB/s in place of 20 minutes; four times the budget in
// flight is waiting behind it all the time. The bound of 128 MiB stands for the
// control group of 1 GB.

import (
	"strings"
	"testing"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

func TestC39MegabyteRowsBehindASlowBrokerStayWithinTheBytesAllowed(t *testing.T) {
	t.Parallel()
	k, line := slowBroker(t)
	pg := pgserver.Start(t, pgserver.Options{Version: pgserver.V18, Settings: map[string]string{"wal_sender_timeout": "3s"}})
	h := rig.NewHouse(t, pg, k.Brokers(), k.Topic(t, 6, nil))
	h.Init(t)
	r := h.Start(t)
	drained(t, h, insertRows(t, h, 1, 10, 0), soon)
	pid := h.ReadSlot(t).PID

	const rate, rows, slow = 1_000_000, 150, 40 * time.Second
	line.rate.Store(rate)
	floor := event.LSN(0)
	for i := range rows {
		floor = insertRows(t, h, 11+i, 1, 900_000)
	}
	before, began := published(t, r), time.Now()
	during(t, slow, func() {
		if now := h.ReadSlot(t); now.PID != pid {
			t.Errorf("walsender %d became %d after %s behind a slow broker", pid, now.PID, time.Since(began))
		}
	})
	// Seven tenths of the line: a request under way at either end is not counted.
	moved, could := (published(t, r)-before)*900_000, int64(rate*time.Since(began).Seconds())
	if moved < could*7/10 {
		t.Errorf("%d bytes arrived where %d could have: slower than the broker", moved, could)
	}
	now, peak := r.RSS()
	t.Logf("%d of %d bytes in %s; RSS %d MiB, peak %d MiB", moved, could, time.Since(began), now>>20, peak>>20)
	line.rate.Store(0)
	drained(t, h, floor, 2*soon)
	r.WaitReady(soon)
	if _, peak = r.RSS(); peak > 128<<20 {
		t.Errorf("the relay took %d MiB at its peak, bound is 128", peak>>20)
	}
	oracle.Require(t, committed(t, h), k.Consume(t, h.Topic), 0)
	if strings.Contains(pg.Log(), "due to replication timeout") {
		t.Error("the server ended the walsender for its timeout")
	}
	if code, took := r.Stop(); code != 0 {
		t.Errorf("the stop took %s and exited %d", took, code)
	}
}
