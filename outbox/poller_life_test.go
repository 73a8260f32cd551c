package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/relay"
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

// D7: what was claimed is settled, what was not stays pending, nothing stays processing.
func TestAnOrderlyEndLeavesNothingProcessing(t *testing.T) {
	t.Parallel()
	for _, grace := range []time.Duration{2 * time.Millisecond, 20 * time.Second} { // the publisher answers in time, or not
		synctest.Test(t, func(t *testing.T) {
			db, b := outboxfake.NewDB(), newBroker()
			insert(db, "k", 200)
			p := start(t, db, b, setup{name: "one", delay: func() time.Duration { return grace }, room: 20})
			until(t, time.Minute, "claimed", func() bool { return db.Count(outboxfake.Processing) > 100 })
			p.ended = true
			p.cancel()
			<-p.done
			if n := db.Count(outboxfake.Processing); n != 0 {
				t.Fatalf("%d rows stay processing", n)
			}
			if n := db.Count(outboxfake.Published); n > len(b.ids("")) {
				t.Fatalf("%d rows are published, %d were delivered", n, len(b.ids("")))
			}
			for _, id := range []string{"r000001", "r000005", "r000150"} {
				if r := db.Row(id); r.Attempts != 0 {
					t.Fatalf("the end of the relay counts as an attempt: %+v", r)
				}
			}
			p.leaseUp()
			<-p.leased
		})
	}
}

func TestWhatCannotBeWrittenWhenTheTimeIsOverStaysForTheReclaim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, b := outboxfake.NewDB(), newBroker()
		insert(db, "k", 5)
		p := start(t, db, b, setup{name: "one", before: func(op string) error {
			if op == "settle" {
				return errDown
			}
			return nil
		}})
		until(t, time.Minute, "sent", func() bool { return len(b.ids("")) == 5 })
		began := time.Now()
		p.ended = true
		p.cancel()
		<-p.done
		if took := time.Since(began); took > 6*time.Second {
			t.Errorf("the end took %v, with a grace of 5 s", took)
		}
		if n := db.Count(outboxfake.Processing); n != 5 {
			t.Errorf("%d rows stay claimed", n)
		}
		p.leaseUp()
		<-p.leased
	})
}

func TestAFaultThatNobodyKnowsHalts(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"claim", "settle", "unfinished", "reclaim"} {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				db, b := outboxfake.NewDB(), newBroker()
				insert(db, "k", 5)
				var cured atomic.Bool
				p := start(t, db, b, setup{name: "one", before: func(o string) error {
					if o == op && !cured.Swap(true) {
						return errHalt
					}
					return nil
				}})
				p.ended = true
				if err := <-p.done; !errors.Is(err, errHalt) {
					t.Fatalf("want the fault, got %v", err)
				}
				if n := db.Count(outboxfake.Processing); n != 0 {
					t.Errorf("%d rows stay processing", n)
				}
				p.cancel()
				p.leaseUp()
				<-p.leased
			})
		})
	}
}

// A2 of the log's world: policy stop halts the feed, and the row is pending again.
func TestPolicyStopReleasesTheRow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := outboxfake.NewDB()
		insert(db, "k", 2)
		table := &outboxfake.Table{DB: db, Kind: outboxfake.ForzeRow}
		p := outbox.NewPoller([]outbox.Table{table}, nil, nil, outbox.NewGate(), outbox.Options{}, outbox.Gear{}, outbox.PollerObserver{})
		batch, err := p.Next(t.Context())
		if err != nil || len(batch.Events) != 2 || len(batch.Spans) != 2 || batch.Spans[1].End != event.AtLSN(2) {
			t.Fatalf("%+v %v", batch, err)
		}
		if p.Settle(0, errHalt) {
			t.Fatal("the poller deals with a halt itself")
		}
		if !p.Settle(1, nil) {
			t.Fatal("a success is refused")
		}
		if err := p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if db.Row("r000001").Status != outboxfake.Pending || db.Row("r000002").Status != outboxfake.Published {
			t.Fatalf("%+v %+v", db.Row("r000001"), db.Row("r000002"))
		}
	})
}

// nothing is a source that waits.
type nothing struct{ end chan struct{} }

func (n nothing) Next(ctx context.Context) (*event.Batch, error) {
	select {
	case <-n.end:
		return nil, context.Canceled
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
func (n nothing) Finish()                     { close(n.end) }
func (n nothing) Confirm(event.Position)      {}
func (n nothing) Close(context.Context) error { return nil }

// C77: the catch-up brings all that is pending when it begins, alone, and nothing that came later: that
// is the log's, which has it among events that no table has.
func TestTheCatchUpBringsWhatWasThereAndLeavesWritersToTheLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, b := outboxfake.NewDB(), newBroker()
		b.missing["late"] = true
		for i := range 1000 {
			db.Insert(outboxfake.Row{Key: fmt.Sprint("k", i%10)})
		}
		db.Insert(outboxfake.Row{ID: "later", Key: "later", Route: "late"}) // its backoff is the sweep's
		db.Insert(outboxfake.Row{ID: "comes", Key: "comes"})                // with the log
		db.Hold("other", time.Minute, 14, 15)
		ctx, cancel := contextOf(t)
		var written atomic.Int64
		writers := make(chan struct{})
		go func() {
			defer close(writers)
			for i := 0; ctx.Err() == nil; i++ {
				db.Insert(outboxfake.Row{ID: fmt.Sprintf("w%06d", i), Key: "w"})
				written.Add(1)
				time.Sleep(5 * time.Millisecond)
			}
		}()
		var turned atomic.Bool
		var left int
		began := atomic.Int64{} // rows of writers that were there when it looked
		p := start(t, db, b, setup{
			name: "one", opt: outbox.Options{Batch: 50, Attempts: 100},
			gear: outbox.Gear{Kind: outbox.GearCatchUp, Coming: func(_ context.Context, each func(string, []byte)) error {
				each("public.outbox", []byte("comes"))
				each("public.other", []byte("later"))
				return nil
			}},
			slow: func(op string) {
				if op == "owed" {
					began.Store(int64(written.Load()))
				}
				if op == "claim" {
					time.Sleep(30 * time.Millisecond)
				}
			},
			next: func() (relay.Source, outbox.Desk) {
				left = db.Count(outboxfake.Processing)
				turned.Store(true)
				return nothing{make(chan struct{})}, nil
			},
		})
		time.Sleep(30 * time.Second)
		if len(b.ids("")) > 0 || p.n.state.Load() != event.StateStandby {
			t.Fatalf("it claims beside another, state %v", p.n.state.Load())
		}
		until(t, 2*time.Minute, "turned", turned.Load)
		if left != 0 {
			t.Errorf("%d rows were under way at the turn", left)
		}
		old := 0
		for _, id := range b.ids("") {
			if id[0] == 'r' {
				old++
			}
		}
		if old != 1000 || inversions(b) != 0 {
			t.Errorf("%d of 1000 old rows, %d inversions", old, inversions(b))
		}
		if got := b.ids("comes"); len(got) > 0 {
			t.Errorf("%v was published, which the log will bring", got)
		}
		later := 0
		for _, id := range b.ids("w") {
			var n int64
			if _, err := fmt.Sscanf(id, "w%d", &n); err != nil || n > began.Load() {
				later++
			}
		}
		if later > 0 || began.Load() == 0 || written.Load() < began.Load()+10 {
			t.Errorf("%d rows were published that came after the catch-up began (%d were there, %d were written)", later, began.Load(), written.Load())
		}
		if r := db.Row("later"); r.Status != outboxfake.Pending || r.Attempts == 0 {
			t.Errorf("the row that failed is %+v", r)
		}
		cancel()
		<-writers
		p.ended = true
		p.cancel()
		<-p.done
		p.leaseUp()
		<-p.leased
	})
}

// A row fails while the database is asked what holds keys.
func TestALookNeverForgetsWhatFailedMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, b := outboxfake.NewDB(), newBroker()
		b.missing["late"] = true
		db.Insert(outboxfake.Row{ID: "k1", Key: "k", Route: "late"})
		var looks atomic.Int64
		p := start(t, db, b, setup{
			name: "one", opt: outbox.Options{BackoffMin: 20 * time.Second}, delay: func() time.Duration { return 5500 * time.Millisecond },
			slow: func(op string) {
				if op == "unfinished" && looks.Add(1) == 2 {
					time.Sleep(time.Second)
				}
			},
		})
		time.Sleep(7 * time.Second)
		if looks.Load() < 2 || db.Row("k1").Attempts != 1 {
			t.Fatalf("%d looks, the row is %+v", looks.Load(), db.Row("k1"))
		}
		b.change(func(b *broker) { delete(b.missing, "late") })
		insert(db, "k", 1)
		until(t, 2*time.Minute, "drained", drained(db))
		equal(t, b.ids("k"), []string{"k1", "r000002"})
		p.stop(t)
	})
}

func TestADeletedRowFreesItsKey(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]outbox.Traits{"row": outboxfake.ForzeRow, "basic": outboxfake.Basic} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				db, b, gate := outboxfake.NewDB(), newBroker(), outbox.NewGate()
				b.missing["late"] = true
				db.Insert(outboxfake.Row{ID: "k1", Key: "k", Route: "late"})
				db.Insert(outboxfake.Row{ID: "k2", Key: "k"})
				p := start(t, db, b, setup{name: "one", kind: kind, gate: gate})
				until(t, time.Minute, "held", func() bool { return gate.Len() == 1 })
				until(t, time.Minute, "it waits", func() bool {
					if r := db.Row("k1"); r.Status == outboxfake.Pending && p.n.claims.Load() > 3 {
						db.Delete("k1")
						return true
					}
					return false
				})
				until(t, time.Minute, "the next one", func() bool { return len(b.ids("k")) == 1 })
				until(t, time.Minute, "the key is free", func() bool { return gate.Len() == 0 })
				p.stop(t)
			})
		})
	}
}

func TestTheCaretakerDeletesInBatchesAndReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := outboxfake.NewDB()
		for range 25 {
			db.Insert(outboxfake.Row{Key: "k", Status: outboxfake.Published, PublishedAt: time.Now()})
		}
		insert(db, "k", 3)
		var pending, deleted, calls atomic.Int64
		c := outbox.NewCaretaker([]outbox.Table{&outboxfake.Table{DB: db, Kind: outboxfake.ForzeRow}},
			outbox.Options{KeepPublished: time.Hour, RetainBatch: 10}, outbox.CaretakerObserver{
				Figures: func(_ string, f outbox.Figures) { pending.Store(f.Pending) },
				Retained: func(_ string, r outbox.Retained) {
					calls.Add(1)
					deleted.Add(r.Rows)
				},
			})
		ctx, cancel := contextOf(t)
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.Run(ctx)
		}()
		time.Sleep(59 * time.Minute)
		if deleted.Load() != 0 || pending.Load() != 3 {
			t.Fatalf("%d deleted before their time, %d pending", deleted.Load(), pending.Load())
		}
		time.Sleep(3 * time.Minute)
		if deleted.Load() != 25 || calls.Load() != 3 {
			t.Fatalf("%d rows deleted in %d batches of 10", deleted.Load(), calls.Load())
		}
		cancel()
		<-done
	})
}
