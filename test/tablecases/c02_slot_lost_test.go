package tablecases

// C02 Slot killed by max_slot_wal_keep_size.
// Source: readysettech/readyset#552, electric-sql/electric#1089, patroni/patroni#3641.
// Ideal: one clear terminal state that names the slot, its wal_status and the last
// confirmed position; not ready within 30 s; no tight loop; never a silent new
// slot; a way back that loses nothing of what is still in the table. A metric
// warns while the slot is in danger. (4 MB instead of 64 MB, segments of 1 MB.)

import (
	"fmt"
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

// smallLog is a server that keeps little log for a slot.
func smallLog(t *testing.T, v pgserver.Version) *pgserver.Server {
	t.Helper()
	return pgserver.Start(t, pgserver.Options{Version: v, SegmentMB: 1, Settings: map[string]string{
		"max_slot_wal_keep_size": "4MB", "wal_keep_size": "0", "max_wal_size": "4MB", "min_wal_size": "2MB",
	}})
}

// writeLog writes so many megabytes of log that nobody publishes.
func (tb *table) writeLog(t *testing.T, mb int) {
	t.Helper()
	tb.Exec(t, `create table if not exists public.bulk (x text)`)
	tb.Exec(t, `alter table public.bulk alter column x set storage external`)
	for range mb {
		tb.Exec(t, `insert into public.bulk select repeat(md5(g::text || random()::text), 4096) from generate_series(1, 8) g`)
	}
}

// loseSlot has the server give the slot up.
func (tb *table) loseSlot(t *testing.T) {
	t.Helper()
	tb.writeLog(t, 16)
	tb.Exec(t, `checkpoint`)
	tb.Exec(t, `checkpoint`)
	if got := tb.ReadSlot(t).WALStatus; got != "lost" {
		t.Fatalf("the slot is %s, want it lost", got)
	}
}

func TestC02LostSlotIsATerminalStateUntilTheTableMayFillTheGap(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, v pgserver.Version) {
		tb := logged(t, smallLog(t, v), "stop")
		tb.Init(t)
		tb.ranOnce(t)
		confirmed := tb.ask(t, `select confirmed_lsn::text from walrelay.source`)
		tb.fill(t, 100, 10, 10)
		tb.loseSlot(t)

		r := tb.halts(t, tb.Slot, "lost", confirmed)
		lines := len(linesOf(r.Log(), "lost"))
		during(t, 5*time.Second)
		if more := len(linesOf(r.Log(), "lost")) - lines; more > 5 {
			t.Errorf("%d further lines in 5 s: a tight loop", more)
		}
		if got := tb.ReadSlot(t).WALStatus; got != "lost" {
			t.Errorf("the slot is %s: somebody made a new one in silence", got)
		}
		stopHalted(t, r)

		tb.onGap("catch_up")
		r = tb.catchesUp(t)
		contains(t, "the log", r.Log(), tb.Slot)
		stopAll(t, r)
		tb.judge(t, 0)
	})
}

func TestC02SlotInDangerShowsInTheMetrics(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, v pgserver.Version) {
		tb := logged(t, smallLog(t, v), "stop")
		tb.Init(t)
		r := startAll(t, tb.variant(lingering("1m")))[0] // nothing is acknowledged, nothing confirmed
		tb.fill(t, 10, 5, 10)
		tb.writeLog(t, 3)
		tb.Exec(t, `checkpoint`)
		rig.Eventually(t, "the slot's state in the metrics", soon, func() error {
			status := tb.ReadSlot(t).WALStatus
			if status == "reserved" {
				tb.writeLog(t, 1)
				tb.Exec(t, `checkpoint`)
				return fmt.Errorf("the server says %s", status)
			}
			if r.Metric("walrelay_slot_wal_status", `state="extended"`)+r.Metric("walrelay_slot_wal_status", `state="unreserved"`)+r.Metric("walrelay_slot_wal_status", `state="lost"`) != 1 {
				return fmt.Errorf("the metrics do not say what the server says: %s", status)
			}
			return nil
		})
	})
}

// stopHalted ends a relay that has halted: nothing is under way.
func stopHalted(t testing.TB, r *rig.Relay) {
	t.Helper()
	if code, took := r.Stop(); code != 0 && code != 4 {
		t.Errorf("the stop of a halted relay took %s and exited %d, want 0 or 4", took, code)
	}
}

// during lets time pass in which something must not happen.
func during(t testing.TB, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}
