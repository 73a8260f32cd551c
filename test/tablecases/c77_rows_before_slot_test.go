package tablecases

// C77 Rows that were there before the slot.
// Source: redpanda-data/connect#4584.
// Ideal: old rows are caught up first: nothing is lost, and every key keeps its
// order across the switch from the table to the log, also when the relay is killed
// on its way.

import (
	"errors"
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

// oldRows is a house whose table has 1 000 pending rows that are older than the
// slot: an application's that began before anybody thought of a relay.
func oldRows(t *testing.T, v pgserver.Version) *table {
	t.Helper()
	tb := newTable(t, pgserver.Shared(t, v), kafkaserver.Shared(t), 3)
	tb.poll("batch: 50, interval: 200ms, lease: 3s")
	tb.Init(t) // a polled source: the table, and no slot
	tb.fill(t, 1000, 20, 10)
	tb.Postgres = ""
	tb.Init(t)
	return tb
}

func TestC77OldRowsComeFirstAndInOrder(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, v pgserver.Version) {
		tb := oldRows(t, v)
		r := tb.Start(t)
		for range 50 { // while it catches up and after
			tb.fill(t, 10, 20, 5)
		}
		tb.published(t, soon)
		r.WaitReady(readyWithin)
		stopAll(t, r)
		tb.judge(t, 0)
	})
}

func TestC77KillsOnTheWayLoseNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, v pgserver.Version) {
		tb := oldRows(t, v)
		const kills = 6
		for i := range kills {
			r := tb.Start(t)
			tb.progress(t, r, time.Duration(i)*100*time.Millisecond)
			r.Kill()
			tb.fill(t, 50, 20, 5)
		}
		r := tb.Start(t)
		tb.fill(t, 100, 20, 5)
		tb.published(t, 2*soon)
		stopAll(t, r)
		// What one relay may have published and not marked: four batches.
		tb.judge(t, kills*4*50)
	})
}

// progress waits until the relay has published something, and a little longer.
func (tb *table) progress(t *testing.T, r *rig.Relay, longer time.Duration) {
	t.Helper()
	rig.Eventually(t, "progress", soon, func() error {
		if publishedBy(t, r) == 0 {
			return errors.New(tb.ask(t, countBy))
		}
		return nil
	})
	during(t, longer)
}
