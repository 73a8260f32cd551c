package mongo_test

import (
	"context"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/inbox"
	"github.com/walrelay/walrelay/inbox/mongo"
	"github.com/walrelay/walrelay/test/mongoserver"
)

// The server commits, and its answer does not arrive, several times in a row: the
// commit is sent again, and the handler is not.
func TestCommitThatWasNotAnsweredIsSentAgain(t *testing.T) {
	t.Parallel()
	s := mongoserver.Start(t, mongoserver.Options{TestCommands: true})
	h := furnish(t, s.Client(t).Database("shop"))
	in := h.inbox(inbox.Options{}, mongo.Options{})
	runs := 0
	// After the commit: the connection is closed, or the answer is an error of the write concern.
	for n, data := range []bson.D{
		{{Key: "failCommands", Value: bson.A{"commitTransaction"}}, {Key: "closeConnection", Value: true}},
		{{Key: "failCommands", Value: bson.A{"commitTransaction"}}, {Key: "writeConcernError", Value: bson.D{{Key: "code", Value: 64}, {Key: "errmsg", Value: "waiting for replication timed out"}}}},
	} {
		s.FailPoint(t, 0, "failCommand", bson.D{{Key: "times", Value: 3}}, data)
		runs = 0
		got, err := in.Process(t.Context(), published(n, int64(n)), func(ctx context.Context, m inbox.Message) error {
			runs++
			return h.pay(ctx, m)
		})
		is(t, "answer lost", inbox.Handled, got, err)
		if runs != 1 {
			t.Errorf("the handler ran %d times", runs)
		}
	}
	h.holds(2, 2)
}

// No answer ever comes: an error, and the record is known when it is handed in again.
func TestRecordWhoseCommitWasNeverAnsweredIsSkippedWhenHandedInAgain(t *testing.T) {
	t.Parallel()
	s := mongoserver.Start(t, mongoserver.Options{TestCommands: true})
	h := furnish(t, s.Client(t).Database("shop"))
	in := h.inbox(inbox.Options{}, mongo.Options{Runs: 2})
	s.FailPoint(t, 0, "failCommand", "alwaysOn", bson.D{
		{Key: "failCommands", Value: bson.A{"commitTransaction"}},
		{Key: "writeConcernError", Value: bson.D{{Key: "code", Value: 64}, {Key: "errmsg", Value: "waiting for replication timed out"}}},
	})
	if got, err := in.Process(t.Context(), published(1, 1), h.pay); got != inbox.Unsettled || err == nil {
		t.Errorf("%s, %v", got, err)
	}
	s.FailPoint(t, 0, "failCommand", "off", nil)
	got, err := in.Process(t.Context(), published(1, 1), h.pay)
	is(t, "again", inbox.Duplicate, got, err)
	h.holds(1, 1)
}

// The primary steps down under handlers at work; each record is handled once.
func TestStepDownUnderAHandlerRunsItAgain(t *testing.T) {
	t.Parallel()
	s := mongoserver.Start(t, mongoserver.Options{Nodes: 3})
	h := furnish(t, s.Client(t).Database("shop"))
	in := h.inbox(inbox.Options{}, mongo.Options{Runs: 20})
	runs := 0
	for n := range 20 {
		got, err := in.Process(t.Context(), published(n, int64(n)), func(ctx context.Context, m inbox.Message) error {
			if runs++; n == 10 && runs == 11 {
				s.StepDown(t)
			}
			return h.pay(ctx, m)
		})
		is(t, eventID(n), inbox.Handled, got, err)
	}
	if runs < 21 {
		t.Errorf("%d runs of 20 handlers: none was cut short", runs)
	}
	for n := range 20 {
		got, err := in.Process(t.Context(), published(n, int64(n)), h.pay)
		is(t, "again "+eventID(n), inbox.Duplicate, got, err)
	}
	h.holds(20, 20)
}

// A consumer dies within its handler. Its transaction does not end with its connection,
// but the server gives it up in time, and the record is then handled by another.
func TestRecordOfADeadConsumerWaitsUntilTheServerGivesItsTransactionUp(t *testing.T) {
	t.Parallel()
	s := mongoserver.Start(t, mongoserver.Options{Params: map[string]string{"transactionLifetimeLimitSeconds": "2"}})
	h := furnish(t, s.Client(t).Database("shop"))
	dead, err := h.db.Client().StartSession() // never ended: as of a process that is no more
	if err != nil {
		t.Fatal(err)
	}
	if err := dead.StartTransaction(); err != nil {
		t.Fatal(err)
	}
	in := h.inbox(inbox.Options{}, mongo.Options{})
	if _, err := in.Handle(driver.NewSessionContext(t.Context(), dead), published(1, 1), h.pay); err != nil {
		t.Fatal(err)
	}
	got, err := in.Process(t.Context(), published(1, 1), h.pay)
	is(t, "the heir", inbox.Handled, got, err)
	h.holds(1, 1)
}
