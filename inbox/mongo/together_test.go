package mongo_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/inbox"
	"github.com/walrelay/walrelay/inbox/mongo"
)

// attempts counts the commands that set marks.
type attempts struct{ n atomic.Int32 }

func (a *attempts) monitor() *options.ClientOptions {
	return options.Client().SetMonitor(&event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
		if name, ok := e.Command.Lookup("update").StringValueOK(); ok && name == "inbox" {
			a.n.Add(1)
		}
	}})
}

// reach waits until so many attempts were made.
func (a *attempts) reach(t *testing.T, n int32) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); a.n.Load() < n; <-tick.C {
		if time.Now().After(deadline) {
			t.Errorf("%d attempts to mark, want %d", a.n.Load(), n)
			return
		}
	}
}

// After a rebalance two consumers can hold the same record. The one that comes second
// outlasts the handler of the first, though that takes longer than its runs would.
func TestOneOfTwoConsumersWithTheSameRecordRunsTheHandler(t *testing.T) {
	t.Parallel()
	var a attempts
	h := newHouse(t, a.monitor())
	var runs atomic.Int32
	started, other := make(chan struct{}), make(chan struct{})
	consume := func(hold bool) (inbox.Outcome, error) {
		in := h.inbox(inbox.Options{}, mongo.Options{Runs: 2})
		return in.Process(t.Context(), published(1, 1), func(ctx context.Context, m inbox.Message) error {
			runs.Add(1)
			if hold {
				close(started)
				<-other
			}
			return h.pay(ctx, m)
		})
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		got, err := consume(true)
		is(t, "the first", inbox.Handled, got, err)
	})
	wg.Go(func() {
		<-started
		got, err := consume(false)
		is(t, "the second", inbox.Duplicate, got, err)
	})
	a.reach(t, 6) // more than its runs
	close(other)
	wg.Wait()
	if runs.Load() != 1 {
		t.Errorf("the handler ran %d times", runs.Load())
	}
	h.holds(1, 1)
}

func TestConsumerThatWaitedRunsTheHandlerWhenTheOtherFails(t *testing.T) {
	t.Parallel()
	var a attempts
	h := newHouse(t, a.monitor())
	in := h.inbox(inbox.Options{}, mongo.Options{})
	started, other := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := in.Process(t.Context(), published(1, 1), func(ctx context.Context, m inbox.Message) error {
			close(started)
			<-other
			return h.payThenFail(ctx, m)
		})
		if !errors.Is(err, errNoMoney) {
			t.Errorf("the first: %v", err)
		}
	})
	wg.Go(func() {
		<-started
		got, err := in.Process(t.Context(), published(1, 1), h.pay)
		is(t, "the second", inbox.Handled, got, err)
	})
	a.reach(t, 3)
	close(other)
	wg.Wait()
	h.holds(1, 1)
}

// Patience has an end, and a cancelled context ends it at once.
func TestConsumerDoesNotWaitForEverForAMarkThatIsHeld(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	ctx, s := h.begin()
	if _, err := h.inbox(inbox.Options{}, mongo.Options{}).Handle(ctx, published(1, 1), h.pay); err != nil {
		t.Fatal(err)
	}
	never := func(context.Context, inbox.Message) error { t.Error("the handler ran"); return nil }
	in := h.inbox(inbox.Options{}, mongo.Options{Runs: 2, Patience: 100 * time.Millisecond})
	begun := time.Now()
	if got, err := in.Process(t.Context(), published(1, 1), never); got != inbox.Unsettled || err == nil || time.Since(begun) < 100*time.Millisecond {
		t.Errorf("%s, %v after %s", got, err, time.Since(begun))
	}
	short, cancel := context.WithCancel(t.Context())
	go cancel()
	if got, err := h.inbox(inbox.Options{}, mongo.Options{}).Process(short, published(1, 1), never); got != inbox.Unsettled || !errors.Is(err, context.Canceled) {
		t.Errorf("%s, %v", got, err)
	}
	if err := s.CommitTransaction(ctx); err != nil {
		t.Error(err)
	}
	h.holds(1, 1)
}

// Many consumers, many records, each delivered to all of them in a different order.
func TestManyConsumersHandleEachRecordOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	const consumers, records = 4, 50
	in := h.inbox(inbox.Options{}, mongo.Options{})
	var wg sync.WaitGroup
	for c := range consumers {
		wg.Go(func() {
			for i := range records {
				n := (i*(2*c+1) + 7*c) % records
				if _, err := in.Process(t.Context(), published(n, int64(n)), h.pay); err != nil {
					t.Errorf("consumer %d, record %d: %v", c, n, err)
				}
			}
		})
	}
	wg.Wait()
	if s := in.Stats(); s.Handled < records || s.Handled+s.Duplicates < consumers*records {
		t.Errorf("stats %+v", s)
	}
	h.holds(records, records)
}
