package forze

// Battery D: the loop, and the end of it.

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/pgserver"
)

// D1, D4: claims follow each other until one is not full, without a sleep between them, and abandoned
// claims are looked for once, not before each claim.
func TestClaimsFollowEachOtherUntilOneIsShort(t *testing.T) {
	onEach(t, func(t *testing.T, v pgserver.Version) {
		d := newDatabase(t, v)
		ids := d.flush(many(35, "")...)
		p := d.poll(acknowledge, setting{opt: outbox.Options{Batch: 10, Interval: 10 * time.Minute}})
		d.becomes("published 35", states) // a sleep would take ten minutes
		p.mustStop(t)
		same(t, "deliveries", p.deliveries(), ids)
		if want := []int{10, 10, 10, 5}; len(p.claims) < 4 || !slices.Equal(p.claims[:4], want) {
			t.Errorf("claims of %v rows, want %v first", p.claims, want)
		}
		// A change of the leases is one more occasion.
		if n := p.table.count("reclaim"); n > 2 {
			t.Errorf("%d looks for abandoned claims, want one", n)
		}
		for _, id := range ids {
			d.isPublished(id)
		}
	})
}

// D3: an empty table is claimed from once, and then not before the interval is over or
// rows are announced.
func TestEmptyTableIsClaimedFromOnce(t *testing.T) {
	onEach(t, func(t *testing.T, v pgserver.Version) {
		d := newDatabase(t, v)
		p := d.poll(acknowledge, setting{opt: outbox.Options{Interval: 10 * time.Minute}})
		p.saw("an empty claim", func() bool { return len(p.claims) > 0 })
		d.ask("select pg_sleep(1)")
		p.mu.Lock()
		n := len(p.claims)
		p.mu.Unlock()
		if n > 2 { // a change of the leases is one more occasion
			t.Errorf("%d claims of an empty table within a second, want one", n)
		}
		id := d.flush(given{key: "k"})[0]
		p.source.Wake()
		d.becomes("published", `select status from public.outbox where id = $1::uuid`, id)
		p.mustStop(t)
		d.isPublished(id)
	})
}

// D5: a claim that fails is said, and the next is made.
func TestFailingClaimIsSaidAndTheLoopGoesOn(t *testing.T) {
	onEach(t, func(t *testing.T, v pgserver.Version) {
		d := newDatabase(t, v)
		ids := d.flush(many(5, "")...)
		p := d.poll(acknowledge, setting{before: func(op string, n int) error {
			if op == "claim" && n <= 2 {
				return passing("connection reset by peer")
			}
			return nil
		}})
		d.becomes("published 5", states)
		p.mustStop(t)
		if !slices.Contains(p.states, event.StateDisconnected) {
			t.Errorf("states %v, want that it said that the table cannot be read", p.states)
		}
		same(t, "deliveries", p.deliveries(), ids)
		for _, id := range ids {
			d.isPublished(id)
		}
	})
}

// D7: rows written just before a stop are published within the grace, or stay pending as they
// were written; never processing.
func TestStopLeavesNoRowInProcessing(t *testing.T) {
	onEach(t, func(t *testing.T, v pgserver.Version) {
		for name, grace := range map[string]time.Duration{"within the grace": 20 * time.Second, "without an answer": 500 * time.Millisecond} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				d := newDatabase(t, v)
				ids := d.flush(many(8, "")...)
				open, reached, once := make(chan struct{}), make(chan struct{}), sync.Once{}
				p := d.poll(func(ctx context.Context, rec *event.Record, _ int) error {
					if string(rec.Origin.Row) != ids[0] && string(rec.Origin.Row) != ids[1] {
						once.Do(func() { close(reached) })
						select {
						case <-open:
						case <-ctx.Done():
						}
					}
					return nil
				}, setting{grace: grace})
				<-reached
				d.becomes("processing 6, published 2", states)
				late := d.flush(many(3, "")...)
				if grace > time.Second {
					p.cancel()
					close(open)
					if err := p.stop(); err != nil {
						t.Fatalf("the stop answered %v", err)
					}
					for _, id := range ids {
						d.isPublished(id)
					}
				} else {
					if err := p.stop(); err == nil {
						t.Error("the stop says nothing of six rows that are not acknowledged")
					}
					for i, id := range ids {
						if i < 2 {
							d.isPublished(id)
							continue
						}
						d.is(id, changes{}) // as it was written: nothing was tried
					}
				}
				sent := p.deliveries()
				for _, id := range late {
					if slices.Contains(sent, id) {
						d.isPublished(id)
						continue
					}
					d.is(id, changes{})
				}
			})
		}
	})
}

// D8, D9: a row that fails while the relay stops is tried no second time, and what
// comes after it in its key stays pending.
func TestStopTriesNoRowTwice(t *testing.T) {
	onEach(t, func(t *testing.T, v pgserver.Version) {
		d := newDatabase(t, v)
		ids := d.flush(many(3, "k")...)
		reached, open := make(chan struct{}, 8), make(chan struct{})
		p := d.poll(func(ctx context.Context, _ *event.Record, _ int) error {
			reached <- struct{}{}
			select {
			case <-open:
			case <-ctx.Done():
			}
			return passing("topic orders does not exist")
		}, setting{opt: outbox.Options{BackoffMin: time.Millisecond, BackoffMax: time.Millisecond}})
		<-reached
		p.cancel()
		close(open)
		_ = p.stop()
		if n := p.offers(ids[0]); n != 1 {
			t.Errorf("the row was tried %d times, want once", n)
		}
		d.is(ids[0], changes{"attempts": 1, "last_error": "topic orders does not exist", "available_at": d.ever()})
		d.is(ids[1], changes{})
		d.is(ids[2], changes{})
	})
}

// D12: a relay that is started after a stop goes on where the other was.
func TestLoopGoesOnAfterARestart(t *testing.T) {
	onEach(t, func(t *testing.T, v pgserver.Version) {
		d := newDatabase(t, v)
		first := d.poll(acknowledge, setting{})
		a := d.flush(many(3, "k")...)
		d.becomes("published 3", states)
		first.mustStop(t)
		b := d.flush(many(3, "k")...)
		second := d.poll(acknowledge, setting{})
		d.becomes("published 6", states)
		second.mustStop(t)
		same(t, "deliveries of the second", second.deliveries(), b)
		for _, id := range slices.Concat(a, b) {
			d.isPublished(id)
		}
	})
}
