package mongo_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/inbox"
	"github.com/walrelay/walrelay/inbox/mongo"
	"github.com/walrelay/walrelay/test/mongoserver"
)

var errNoMoney = errors.New("no money")

func (h *house) payThenFail(ctx context.Context, m inbox.Message) error {
	return errors.Join(h.pay(ctx, m), errNoMoney)
}

func TestFailedHandlerTakesTheMarkBackAndTheRecordIsHandledAgain(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	in := h.inbox(inbox.Options{}, mongo.Options{})
	got, err := in.Process(t.Context(), published(1, 1), h.payThenFail)
	if got != inbox.Unsettled || !errors.Is(err, errNoMoney) || !strings.Contains(err.Error(), eventID(1)) {
		t.Errorf("%s, %v", got, err)
	}
	h.holds(0, 0)
	got, err = in.Process(t.Context(), published(1, 1), h.pay)
	is(t, "again", inbox.Handled, got, err)
	h.holds(1, 1)
}

func TestPanickingHandlerLeavesNoMarkAndNoOpenTransaction(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	in := h.inbox(inbox.Options{}, mongo.Options{})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_, _ = in.Process(t.Context(), published(1, 1), func(context.Context, inbox.Message) error { panic("no memory") })
	}()
	h.holds(0, 0)
	if n := h.db.Client().NumberSessionsInProgress(); n != 0 {
		t.Errorf("%d sessions are still taken", n)
	}
	// Nobody holds the mark: it need not be waited for.
	got, err := in.Process(t.Context(), published(1, 1), h.pay)
	is(t, "again", inbox.Handled, got, err)
}

// A caller that ignores the error of Handle and commits must not keep a mark
// without its handling: the record would be lost.
func TestMarkOfAFailedHandlerCannotBeCommitted(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	in := h.inbox(inbox.Options{}, mongo.Options{})
	ctx, s := h.begin()
	if _, err := in.Handle(ctx, published(1, 1), h.payThenFail); !errors.Is(err, errNoMoney) {
		t.Error(err)
	}
	if err := s.CommitTransaction(ctx); err == nil {
		t.Error("it was committed")
	}
	h.holds(0, 0)
}

// The mark of one that is there already costs the others nothing.
func TestSeveralRecordsShareATransaction(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	in := h.inbox(inbox.Options{}, mongo.Options{})
	got, err := in.Process(t.Context(), published(1, 1), h.pay)
	is(t, "before", inbox.Handled, got, err)
	ctx, s := h.begin()
	for offset, c := range []struct {
		n    int
		want inbox.Outcome
	}{{0, inbox.Handled}, {1, inbox.Duplicate}, {2, inbox.Handled}, {2, inbox.Duplicate}, {3, inbox.Handled}} {
		got, err := in.Handle(ctx, published(c.n, int64(offset)), h.pay)
		is(t, eventID(c.n), c.want, got, err)
	}
	h.holds(1, 1)
	if err := s.CommitTransaction(ctx); err != nil {
		t.Fatal(err)
	}
	h.holds(4, 4)
}

func TestHandlerThatEndsTheTransactionOfItsMarkIsTold(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	in := h.inbox(inbox.Options{}, mongo.Options{})
	got, err := in.Process(t.Context(), published(1, 1), func(ctx context.Context, m inbox.Message) error {
		return errors.Join(h.pay(ctx, m), driver.SessionFromContext(ctx).AbortTransaction(ctx))
	})
	if got != inbox.Unsettled || !errors.Is(err, mongo.ErrNotYours) {
		t.Errorf("abort: %s, %v", got, err)
	}
	h.holds(0, 0)
	got, err = in.Process(t.Context(), published(1, 1), func(ctx context.Context, m inbox.Message) error {
		return errors.Join(h.pay(ctx, m), driver.SessionFromContext(ctx).CommitTransaction(ctx))
	})
	if got != inbox.Unsettled || !errors.Is(err, mongo.ErrNotYours) {
		t.Errorf("commit: %s, %v", got, err)
	}
	h.holds(1, 1) // what it committed itself, mark and all
}

// The handler swallowed an error that had aborted the transaction.
func TestAbortedTransactionIsNoSuccess(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	in := h.inbox(inbox.Options{}, mongo.Options{Runs: 2})
	runs := 0
	got, err := in.Process(t.Context(), published(1, 1), func(ctx context.Context, _ inbox.Message) error {
		runs++
		_, _ = h.db.Collection("accounts").InsertOne(ctx, bson.D{{Key: "_id", Value: 1}}) // is there
		return nil
	})
	if got != inbox.Unsettled || err == nil || runs != 2 {
		t.Errorf("%s, %v after %d runs", got, err, runs)
	}
	h.holds(0, 0)
}

func TestHandleWithoutATransactionOrWithAnotherClientsIsRefused(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	in := h.inbox(inbox.Options{}, mongo.Options{})
	ended, s := h.begin()
	if err := s.AbortTransaction(ended); err != nil {
		t.Fatal(err)
	}
	for name, ctx := range map[string]context.Context{"no session": t.Context(), "ended": ended} {
		if _, err := in.Handle(ctx, published(1, 1), h.pay); !errors.Is(err, mongo.ErrNoTransaction) {
			t.Errorf("%s: %v", name, err)
		}
	}
	other := &house{t, mongoserver.Shared(t).Client(t).Database(h.db.Name())} // the very same database
	ctx, s := other.begin()
	if _, err := in.Handle(ctx, published(1, 1), h.pay); !errors.Is(err, mongo.ErrOtherClient) || !s.TransactionRunning() {
		t.Errorf("another client: %v", err)
	}
	h.holds(0, 0)
	// A session that the context of Process carries is not its concern.
	got, err := in.Process(ctx, published(1, 1), h.pay)
	is(t, "process", inbox.Handled, got, err)
	h.holds(1, 1)
}

func TestCancelledRecordIsNeitherMarkedNorHandled(t *testing.T) {
	t.Parallel()
	var aborts atomic.Int32
	h := newHouse(t, options.Client().SetMonitor(&event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
		if e.CommandName == "abortTransaction" {
			aborts.Add(1)
		}
	}}))
	in := h.inbox(inbox.Options{}, mongo.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	got, err := in.Process(ctx, published(1, 1), func(ctx context.Context, m inbox.Message) error {
		defer cancel()
		return h.pay(ctx, m)
	})
	if got != inbox.Unsettled || !errors.Is(err, context.Canceled) {
		t.Errorf("%s, %v", got, err)
	}
	h.holds(0, 0)
	if aborts.Load() != 1 {
		t.Error("the transaction was left open on the server")
	}
	got, err = in.Process(t.Context(), published(1, 1), h.pay)
	is(t, "again", inbox.Handled, got, err)
}

func TestOptionsThatCannotBeAreRefused(t *testing.T) {
	t.Parallel()
	core, err := inbox.New(inbox.Options{Route: "payments"})
	if err != nil {
		t.Fatal(err)
	}
	h := newHouse(t)
	for _, c := range []struct {
		opts mongo.Options
		says string
	}{
		{mongo.Options{Collection: "in$box"}, "collection"},
		{mongo.Options{Collection: "system.inbox"}, "collection"},
		{mongo.Options{Runs: -1}, "runs"},
		{mongo.Options{Patience: -1}, "patience"},
	} {
		if _, err := mongo.New(core, h.db, c.opts); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c.opts, err)
		}
	}
}
