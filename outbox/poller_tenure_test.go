package outbox_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/outboxfake"
)

// A relay dies with rows in work. Its successor has the shards, and dies before it gave
// them back. The next one finds them all the same, long before they count as abandoned.
func TestWhatTheDeadLeftIsFoundAlsoBehindASecondDeath(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, b := outboxfake.NewDB(), newBroker()
		rows := insert(db, "k", 20)
		opt := outbox.Options{Batch: 5, LeaseTTL: 3 * time.Second, Interval: 100 * time.Millisecond}
		first := start(t, db, b, setup{name: "a", opt: opt, delay: func() time.Duration { return time.Hour }})
		until(t, time.Second*10, "a at work", func() bool { return db.Count(outboxfake.Processing) > 0 })
		first.kill()
		second := start(t, db, b, setup{name: "b", opt: opt, before: func(op string) error {
			if op == "reclaim" {
				return errDown
			}
			return nil
		}})
		until(t, 10*time.Second, "b has the shards", func() bool { return second.tenancy.View().All })
		time.Sleep(5 * time.Second) // it renews them meanwhile
		second.kill()
		began := time.Now()
		third := start(t, db, b, setup{name: "c", opt: opt})
		until(t, 20*time.Second, "drained", drained(db))
		equal(t, b.ids("k"), rows)
		if n := third.n.reclaimed.Load(); n == 0 {
			t.Errorf("c reclaimed %d rows within %s", n, time.Since(began))
		}
		third.stop(t)
	})
}
