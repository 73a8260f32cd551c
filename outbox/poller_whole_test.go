package outbox_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/outboxfake"
)

// slowWhole is a parking store whose answers are old when they arrive.
type slowWhole struct {
	outbox.Parking
	late time.Duration
}

func (p *slowWhole) Whole(ctx context.Context, limit int) ([]outbox.Parked, error) {
	list, err := p.Parking.Whole(ctx, limit)
	time.Sleep(p.late)
	return list, err
}

// A parked event is under way when the store is asked what may go, and is published and
// forgotten before the answer is there.
func TestParkedEventIsNeverHandedOutByAnAnswerThatIsOlderThanItsResult(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, b := outboxfake.NewDB(), newBroker()
		park := &outboxfake.Parking{DB: db, Kind: outboxfake.Basic}
		for _, key := range []string{"", "k"} {
			rec := &event.Record{Topic: "orders", Key: []byte(key), Origin: event.Origin{EventID: []byte("of " + key)}}
			if err := park.Park(t.Context(), outbox.Parked{EventID: "of " + key, Key: key, Record: rec}); err != nil {
				t.Fatal(err)
			}
		}
		if n, _ := park.Retry(t.Context(), []int64{1, 2}); n != 2 {
			t.Fatalf("%d entries may go, want 2", n)
		}
		p := start(t, db, b, setup{
			name: "one", kind: outboxfake.Basic,
			delay:   func() time.Duration { return 2450 * time.Millisecond }, // twice: the result is there right before the second answer
			parking: func(store outbox.Parking) outbox.Parking { return &slowWhole{store, time.Second} },
		})
		time.Sleep(time.Minute)
		for _, key := range []string{"", "k"} {
			if n := len(b.times("of " + key)); n != 1 {
				t.Errorf("the event of key %q came %d times", key, n)
			}
		}
		p.stop(t)
	})
}
