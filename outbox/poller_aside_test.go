package outbox_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/outboxfake"
)

// The log's desk holds a key before the store has answered. Rounds of the sweep that
// look at the store meanwhile find nothing against the key.
func TestSweepNeverOpensAKeyWhoseEventIsOnItsWayIntoTheStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, b, gate := outboxfake.NewDB(), newBroker(), outbox.NewGate()
		log := newLogPath(db, b, gate, short)
		ctx, cancel := contextOf(t)
		ended := make(chan struct{})
		go func() { defer close(ended); log.run(ctx) }()
		p := start(t, db, b, setup{
			name: "one", gate: gate, gear: log.gear(),
			opt: outbox.Options{SweepEvery: 10 * time.Millisecond},
		})
		log.insert(outboxfake.Row{ID: "r1", EventID: "e1", Key: "other", Route: "orders"})
		until(t, time.Minute, "the sweep goes round", func() bool { return p.n.rounds.Load() > 0 })
		park := &outboxfake.Parking{DB: db, Kind: outboxfake.ForzeRow}
		for range 100 {
			answered := gate.PutAside("k")
			time.Sleep(75 * time.Millisecond)
			if !gate.Held([]byte("k")) {
				t.Fatal("the key is open while its event is on its way into the store")
			}
			if err := park.Park(ctx, outbox.Parked{Key: "k", EventID: "e", Record: &event.Record{}}); err != nil {
				t.Fatal(err)
			}
			answered()
			time.Sleep(time.Second)
			if !gate.Held([]byte("k")) {
				t.Fatal("the key is open although its event is parked")
			}
			list, _ := park.List(ctx, outbox.ParkedFilter{})
			if _, err := park.Drop(ctx, []int64{list[0].ID}); err != nil {
				t.Fatal(err)
			}
			until(t, time.Minute, "the key is open", func() bool { return gate.Len() == 0 })
		}
		p.stop(t)
		cancel()
		<-ended
	})
}
