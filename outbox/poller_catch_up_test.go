package outbox_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/relay"
	"github.com/walrelay/walrelay/test/outboxfake"
)

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

func (n nothing) Finish() { close(n.end) }

func (n nothing) Confirm(event.Position) {}

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
