package outbox_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/relay"
	"github.com/walrelay/walrelay/test/outboxfake"
)

// A row waits for its next attempt, and those behind it in its key, which were under way
// when a relay died, are due before it. They are not claimed and released over and over beside the
// backlog of other keys, which would take the room of a claim.
func TestRowsBehindOneThatIsNotDueTakeNoRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, b := outboxfake.NewDB(), newBroker()
		const wait = 20 * time.Second
		db.Insert(outboxfake.Row{Key: "slow", Attempts: 3, Available: time.Now().Add(wait)})
		for range 30 {
			db.Insert(outboxfake.Row{Key: "slow", Attempts: 1, Available: time.Now()})
		}
		others := insert(db, "other", 1000)
		p := start(t, db, b, setup{name: "a", opt: outbox.Options{Batch: 10, Interval: time.Second, LeaseTTL: 3 * time.Second}})
		until(t, wait/2, "the other key delivered", func() bool { return len(b.ids("other")) == len(others) })
		if n := p.n.released.Load(); n > int64(len(others))/10 {
			t.Errorf("%d rows were claimed in vain beside %d", n, len(others))
		}
		until(t, wait, "drained", drained(db))
		if n := inversions(b); n != 0 {
			t.Errorf("%d inversions: %s", n, b.history("slow"))
		}
		p.stop(t)
	})
}

// More keys have a row whose turn it is than a claim takes: each has its turn, and a
// catch-up does not end before.
func TestEveryKeyHasItsTurnHoweverManyWait(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]outbox.GearKind{"poll": outbox.GearPoll, "catch up": outbox.GearCatchUp} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				db, b := outboxfake.NewDB(), newBroker()
				for range 3 {
					for n := range 100 {
						db.Insert(outboxfake.Row{Key: fmt.Sprint("k", n), Attempts: 1, Available: time.Now()})
					}
				}
				var turned atomic.Bool
				p := start(t, db, b, setup{
					name: "a", opt: outbox.Options{Batch: 10, Interval: 100 * time.Millisecond, LeaseTTL: 3 * time.Second}, gear: outbox.Gear{Kind: kind},
					next: func() (relay.Source, outbox.Desk) {
						turned.Store(true)
						return nothing{make(chan struct{})}, nil
					},
				})
				until(t, time.Minute, "the end", func() bool { return turned.Load() || kind == outbox.GearPoll && drained(db)() })
				if n := len(b.ids("")); n != 300 || inversions(b) != 0 {
					t.Errorf("%d of 300 rows were brought, %d inversions", n, inversions(b))
				}
				if n := p.n.released.Load(); n > 0 {
					t.Errorf("%d rows were claimed in vain", n)
				}
				p.kill()
			})
		})
	}
}

// Most rows whose turn it is are locked by somebody. A catch-up that asks for those first,
// in vain, goes on to the others before it ends.
func TestCatchUpAsksForEveryRowWhoseTurnItIsBeforeItEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, b := outboxfake.NewDB(), newBroker()
		const keys, locked = 100, 90
		for range 2 {
			for n := range keys {
				db.Insert(outboxfake.Row{Key: fmt.Sprint("k", n), Attempts: 1, Available: time.Now(), Locked: n < locked})
			}
		}
		var turned atomic.Bool
		p := start(t, db, b, setup{
			name: "a", opt: outbox.Options{Batch: 10, Interval: 100 * time.Millisecond, LeaseTTL: 3 * time.Second}, gear: outbox.Gear{Kind: outbox.GearCatchUp},
			next: func() (relay.Source, outbox.Desk) {
				turned.Store(true)
				return nothing{make(chan struct{})}, nil
			},
		})
		until(t, time.Minute, "the turn", turned.Load)
		if n := len(b.ids("")); n != 2*(keys-locked) || inversions(b) != 0 {
			t.Errorf("%d of %d rows were brought, %d inversions", n, 2*(keys-locked), inversions(b))
		}
		p.kill()
	})
}
