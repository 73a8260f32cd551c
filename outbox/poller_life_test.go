package outbox_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/outboxfake"
)

// D1, D3: claims go on while rows come, and an empty one is followed by sleep.
func TestSleepsOnlyAfterAnEmptyClaim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, b := outboxfake.NewDB(), newBroker()
		p := start(t, db, b, setup{name: "one", opt: outbox.Options{Batch: 10, Interval: 10 * time.Second}})
		time.Sleep(2 * time.Second)
		if n := p.n.claims.Load(); n != 1 {
			t.Fatalf("%d claims of an empty table", n)
		}
		insert(db, "k", 35)
		p.poller.Wake()
		began := time.Now()
		until(t, time.Second, "drained", drained(db))
		if took, n := time.Since(began), p.n.claims.Load(); took > 500*time.Millisecond || n > 1+5 {
			t.Fatalf("35 rows took %v and %d claims of 10", took, n-1)
		}
		before := p.n.claims.Load()
		time.Sleep(60 * time.Second)
		if n := p.n.claims.Load() - before; n > 7 {
			t.Errorf("%d claims in a minute without rows", n)
		}
		p.stop(t)
	})
}

func TestInFlightIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, b := outboxfake.NewDB(), newBroker()
		for i := range 500 {
			insert(db, fmt.Sprint("k", i), 1)
		}
		p := start(t, db, b, setup{name: "one", opt: outbox.Options{Batch: 10, InFlight: 40}, delay: func() time.Duration { return time.Second }})
		for db.Count(outboxfake.Pending) > 0 {
			time.Sleep(100 * time.Millisecond)
			if n := db.Count(outboxfake.Processing); n > 40 {
				t.Fatalf("%d rows under way", n)
			}
		}
		until(t, time.Minute, "drained", drained(db))
		p.stop(t)
	})
}

// D5, C12, C61: what passes is tried again, with the same outcomes and nothing sent twice.
func TestPassingFaultsOfTheDatabaseCostNothing(t *testing.T) {
	t.Parallel()
	for _, kind := range []outbox.Traits{outboxfake.ForzeRow, outboxfake.ForzeLease} {
		synctest.Test(t, func(t *testing.T) {
			db, b := outboxfake.NewDB(), newBroker()
			insert(db, "k", 60)
			p := start(t, db, b, setup{name: "one", kind: kind, opt: outbox.Options{Batch: 10}, before: func(string) error {
				if rand.N(2) == 0 {
					return errDown
				}
				return nil
			}})
			until(t, 10*time.Minute, "drained", drained(db))
			p.stop(t)
			if len(b.ids("")) != 60 || inversions(b) != 0 || p.n.lost.Load() != 0 {
				t.Fatalf("%d deliveries of 60, %d inversions, %d lost", len(b.ids("")), inversions(b), p.n.lost.Load())
			}
		})
	}
}

// C14: equal jitter, doubled up to the cap.
func TestEachAttemptWaitsInItsBand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, b := outboxfake.NewDB(), newBroker()
		b.missing["late"] = true
		for i := range 20 {
			db.Insert(outboxfake.Row{ID: fmt.Sprint("x", i), Key: fmt.Sprint("k", i), Route: "late"})
		}
		p := start(t, db, b, setup{name: "one", opt: outbox.Options{Attempts: 100, BackoffMax: 8 * time.Second, Interval: 10 * time.Millisecond}})
		for attempt := 1; attempt <= 6; attempt++ {
			seen := map[string]time.Duration{}
			until(t, 30*time.Second, fmt.Sprint("attempt ", attempt), func() bool {
				for i := range 20 {
					r := db.Row(fmt.Sprint("x", i))
					if r.Attempts == attempt && seen[r.ID] == 0 && r.Status == outboxfake.Pending {
						seen[r.ID] = time.Until(r.Available)
					}
				}
				return len(seen) == 20
			})
			raw := min(8*time.Second, time.Second<<(attempt-1))
			for id, d := range seen {
				if d < raw/2-20*time.Millisecond || d > raw {
					t.Errorf("attempt %d of %s waits %v, want [%v, %v]", attempt, id, d, raw/2, raw)
				}
			}
			if attempt > 1 { // the bands of rows that were early overlap with the next attempt
				break
			}
		}
		p.stop(t)
	})
}
