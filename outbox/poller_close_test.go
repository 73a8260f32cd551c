package outbox_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/outboxfake"
)

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
