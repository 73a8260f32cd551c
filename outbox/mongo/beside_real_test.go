package mongo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/mongoserver"
)

// An application's transaction has written to the row and not ended: the outcome waits for it.
func TestAnOutcomeWaitsForARowThatSomebodyWritesTo(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t), event.Forze, nil)
	h.insert(1, 2, 2)
	c := h.claim(outbox.Request{Limit: 1})
	session, err := h.c.Database().Client().StartSession()
	if err != nil {
		t.Fatal(err)
	}
	defer session.EndSession(h.ctx())
	if err := session.StartTransaction(); err != nil {
		t.Fatal(err)
	}
	foreign := contextOf(h.ctx(), session)
	if _, err := h.c.UpdateMany(foreign, bson.D{}, bson.D{is("$set", bson.D{is("traceparent", "x")})}); err != nil {
		t.Fatal(err)
	}
	settled := make(chan []int)
	go func() {
		lost, err := h.Settle(h.ctx(), []outbox.Outcome{{ID: id(1), Fence: c.Fence}})
		if err != nil {
			t.Error(err)
		}
		settled <- lost
	}()
	marked := make(chan outbox.Marked)
	go func() {
		m, err := h.Mark(h.ctx(), []outbox.Mark{{ID: id(2)}})
		if err != nil {
			t.Error(err)
		}
		marked <- m
	}()
	if err := session.CommitTransaction(h.ctx()); err != nil {
		t.Fatal(err)
	}
	if lost := <-settled; len(lost) != 0 {
		t.Fatal("the outcome is lost")
	}
	if m := <-marked; m.Pending != 1 {
		t.Fatalf("marked %+v", m)
	}
	h.wantRow(1, "published attempts=0 published_at processing_at")
}

// Parking writes its entry and the row's state in one transaction.
func TestMarksAndRequeuesTakePartInTheCallersTransaction(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t), event.Forze, nil)
	h.insert(1, 2, 2)
	h.set(bson.D{is("status", failed)}, 2)
	client, err := h.db.connect(h.ctx())
	if err != nil {
		t.Fatal(err)
	}
	session, err := client.StartSession()
	if err != nil {
		t.Fatal(err)
	}
	defer session.EndSession(h.ctx())
	for _, commit := range []bool{false, true} {
		if err := session.StartTransaction(options.Transaction().SetWriteConcern(journaledMajority).SetReadConcern(readconcern.Local()).SetReadPreference(readpref.Primary())); err != nil {
			t.Fatal(err)
		}
		in := contextOf(h.ctx(), session)
		if m, err := h.Mark(in, []outbox.Mark{{ID: id(1), Error: "no"}, {ID: id(9)}}); err != nil || m.Pending != 1 || m.Absent != 1 {
			t.Fatal(m, err)
		}
		if n, err := h.Requeue(in, []string{id(2)}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		h.wantRow(1, "pending attempts=0")
		if !commit {
			if err := session.AbortTransaction(h.ctx()); err != nil {
				t.Fatal(err)
			}
			h.wantRow(2, "failed attempts=0")
			continue
		}
		if err := session.CommitTransaction(h.ctx()); err != nil {
			t.Fatal(err)
		}
	}
	h.wantRow(1, "failed attempts=0 error=no")
	h.wantRow(2, "pending attempts=0")
}

// What a poller of the application does is seen by marks, and leaves no claim of ours in force.
func TestAForeignPollerIsSeenAndItsClaimsAreItsOwn(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t), event.Forze, nil)
	h.insert(1, 4, 4)
	c := h.claim(outbox.Request{Limit: 4})
	// As the library does: reclaim keeps the token, a claim writes its own.
	h.set(bson.D{is("status", pending), is("processing_at", nil)}, 1, 2)
	h.set(bson.D{is("status", processing), is("claim_token", "theirs")}, 2)
	h.set(bson.D{is("status", published), is("claim_token", "theirs")}, 3)
	var outcomes []outbox.Outcome
	for n := 1; n <= 4; n++ {
		outcomes = append(outcomes, outbox.Outcome{ID: id(n), Fence: c.Fence})
	}
	if lost := h.settle(outcomes...); !slices.Equal(lost, []int{0, 1, 2}) {
		t.Fatalf("lost %v", lost)
	}
	h.wantRow(1, "pending attempts=0")
	m := h.mark(outbox.Mark{ID: id(1)}, outbox.Mark{ID: id(2)}, outbox.Mark{ID: id(3)})
	if want := (outbox.Marked{Pending: 1, Foreign: 1, Settled: 1}); fmt.Sprint(m) != fmt.Sprint(want) {
		t.Fatalf("marked %+v", m)
	}
}

func TestABrokenConnectionIsARetryAndIsRemade(t *testing.T) {
	t.Parallel()
	srv := mongoserver.Start(t, mongoserver.Options{TestCommands: true})
	h := newHouse(t, srv, event.Forze, nil)
	h.insert(1, 9, 9)
	first := h.claim(outbox.Request{Limit: 1})
	srv.FailPoint(t, 0, "failCommand", bson.D{is("times", 1)}, bson.D{is("failCommands", bson.A{"update"}), is("closeConnection", true)})
	if _, err := h.Claim(h.ctx(), outbox.Request{Limit: 1}); event.ClassOf(err) != event.Retry {
		t.Fatalf("want a retry, got %v", err)
	}
	second := h.claim(outbox.Request{Limit: 2})
	same(t, "the next call", rowIDs(second), ids(2, 3))
	// The write is done, the answer is not: nobody knows of the claim, but its time betrays it.
	srv.FailPoint(t, 0, "failCommand", bson.D{is("skip", 2)}, bson.D{is("failCommands", bson.A{"find"}), is("closeConnection", true)})
	short, cancel := context.WithTimeout(h.ctx(), time.Second) // within which the driver tries again and again
	defer cancel()
	if _, err := h.Claim(short, outbox.Request{Limit: 1}); event.ClassOf(err) != event.Retry {
		t.Fatalf("want a retry, got %v", err)
	}
	srv.FailPoint(t, 0, "failCommand", bson.D{is("times", 1)}, bson.D{
		is("failCommands", bson.A{"update"}), is("writeConcernError", bson.D{is("code", 91), is("errmsg", "shutting down")}),
	})
	c, err := h.Claim(h.ctx(), outbox.Request{Limit: 2})
	if event.ClassOf(err) != event.Retry {
		t.Fatalf("want a retry, got %v and %v", c, err)
	}
	h.wantRow(4, "processing attempts=0 processing_at")
	var n int
	n, err = h.Reclaim(h.ctx(), outbox.Reclaim{
		Shards: outbox.Shards{Of: 1, Own: []int{0}}, Tenures: []outbox.Tenure{{From: string(second.Fence), Until: "infinity"}},
		Except: append(rowIDs(first), rowIDs(second)...),
	})
	if n != 3 || err != nil {
		t.Fatalf("reclaimed %d: %v", n, err)
	}
	h.wantRow(4, "pending attempts=1 due")
	if err := h.db.Close(h.ctx()); err != nil {
		t.Fatal(err)
	}
	var e *event.Error
	if _, err := h.Claim(h.ctx(), outbox.Request{Limit: 1}); !errors.As(err, &e) || e.Class != event.Retry {
		t.Fatalf("after the end: %v", err)
	}
}

// Nobody who looks after a claim failed is surprised by what it goes on to take.
func TestAClaimThatFailsHasEnded(t *testing.T) {
	t.Parallel()
	srv := mongoserver.Start(t, mongoserver.Options{TestCommands: true})
	h := newHouse(t, srv, event.Forze, nil)
	h.insert(1, 50, 9)
	srv.FailPoint(t, 0, "hangDuringBatchUpdate", "alwaysOn", nil)
	short, cancel := context.WithCancel(h.ctx())
	defer cancel()
	result := make(chan error)
	go func() {
		_, err := h.Claim(short, outbox.Request{Limit: 30})
		result <- err
	}()
	await(t, "the claim writes", func() bool { return h.writing() > 0 })
	cancel()
	for range 30 { // what the server does not notice meanwhile, it never does
		if h.writing() == 0 {
			t.Fatal("the server has ended the claim by itself")
		}
		select {
		case err := <-result:
			t.Fatalf("the claim failed before it had ended: %v", err)
		default:
		}
	}
	srv.FailPoint(t, 0, "hangDuringBatchUpdate", "off", nil)
	if err := <-result; err == nil {
		t.Fatal("a claim that was cut off succeeded")
	}
	if n := h.writing(); n > 0 {
		t.Fatal("the claim is under way still")
	}
	if n, err := h.c.CountDocuments(h.ctx(), bson.D{is("status", processing)}); n != 30 || err != nil {
		t.Fatalf("it has taken %d rows: %v", n, err)
	}
}

// writing is how many updates of the collection are under way.
func (h *house) writing() int {
	h.t.Helper()
	cursor, err := h.c.Database().Client().Database("admin").Aggregate(h.ctx(), bson.A{
		op("$currentOp", bson.D{}), op("$match", bson.D{is("op", "update"), is("ns", h.name+".outbox")}), op("$count", "n"),
	})
	n := 0
	if err == nil {
		err = each(h.ctx(), cursor, func(doc bson.Raw) error { n = number(doc.Lookup("n")); return nil })
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return n
}

func TestAClaimThatBeginsToWriteTooLateTakesNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t), event.Forze, nil)
	h.insert(1, 3, 3)
	for looked, want := range map[time.Duration]int64{claimWithin + time.Second: 0, claimWithin / 2: 3} {
		taken, err := h.take(h.ctx(), h.c, h.l.isFree(idValues(ids(1, 3)), time.Now().Add(-looked)), "t")
		if err != nil || taken.ModifiedCount != want {
			t.Fatalf("%s later it took %d rows: %v", looked, taken.ModifiedCount, err)
		}
		h.set(bson.D{is("status", pending)})
	}
}
