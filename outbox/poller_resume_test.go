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

// A catch-up that was killed left rows behind that hold nearly every key. Claims are
// short while those are under way; that is no sign that the backlog were done.
func TestCatchUpDoesNotEndWhileRowsUnderWayHoldTheirKeys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, b := outboxfake.NewDB(), newBroker()
		const rows, keys = 600, 12
		for i := range rows {
			r := outboxfake.Row{Key: fmt.Sprint("k", i%keys)}
			if i < 2*keys {
				r.Attempts = 1 // reclaimed from the dead
			}
			db.Insert(r)
		}
		var turned atomic.Bool
		p := start(t, db, b, setup{
			name: "one", gear: outbox.Gear{Kind: outbox.GearCatchUp}, opt: outbox.Options{Batch: 20},
			delay: func() time.Duration { return 50 * time.Millisecond },
			next: func() (relay.Source, outbox.Desk) {
				turned.Store(true)
				return nothing{make(chan struct{})}, nil
			},
		})
		until(t, 2*time.Minute, "turned", turned.Load)
		if n := len(b.ids("")); n != rows || inversions(b) != 0 {
			t.Errorf("%d of %d rows were brought at the turn, %d inversions", n, rows, inversions(b))
		}
		p.ended = true
		p.cancel()
		<-p.done
		p.leaseUp()
		<-p.leased
	})
}
