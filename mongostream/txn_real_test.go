package mongostream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/test/mongoserver"
)

// R-TXN-ID of the reference: the outbox document is deleted in the transaction that inserted it.
func TestInsertAndDeleteInOneTransactionIsDelivered(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t))
	h.insert(0)
	h.begin()
	w := h.open()
	h.transaction(func(ctx context.Context) error {
		for n := 1; n <= 5; n++ {
			if _, err := h.outbox.InsertOne(ctx, row(n)); err != nil {
				return err
			}
		}
		_, err := h.outbox.DeleteMany(ctx, bson.D{{Key: "event_id", Value: bson.D{{Key: "$in", Value: bson.A{"2", "5"}}}}})
		return err
	})
	got := w.events(5)
	if !slices.Equal(ids(got), numbers(1, 5)) {
		t.Fatal(ids(got))
	}
	for i, e := range got {
		if e.ordinal != uint32(i) {
			t.Errorf("event %d has the ordinal %d", i, e.ordinal)
		}
	}
}

func TestAnAbortedTransactionGivesNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t))
	h.insert(0)
	h.begin()
	w := h.open()
	session, err := h.client.StartSession()
	if err != nil {
		t.Fatal(err)
	}
	defer session.EndSession(ctx(t))
	never := errors.New("never mind")
	_, err = session.WithTransaction(ctx(t), func(ctx context.Context) (any, error) {
		if _, err := h.outbox.InsertOne(ctx, row(1)); err != nil {
			return nil, err
		}
		return nil, never
	})
	if !errors.Is(err, never) {
		t.Fatal(err)
	}
	h.insert(2)
	if got := ids(w.events(1)); got[0] != "2" {
		t.Fatal(got)
	}
}

// A transaction of more than 16 MB lies in several entries of the log. It is cut in
// the middle by the end of a process; the next one begins it anew, and by a broken
// cursor, behind which the same process goes on where it was.
func TestALargeTransactionComesInItsOrderAndIsTakenUpInItsMiddle(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t))
	h.insert(0)
	h.begin()
	const rows = 24
	filler := strings.Repeat("x", 1<<20)
	h.transaction(func(ctx context.Context) error {
		for n := 1; n <= rows; n++ {
			doc := append(row(n), bson.E{Key: "filler", Value: filler})
			if _, err := h.outbox.InsertOne(ctx, doc); err != nil {
				return err
			}
		}
		return nil
	})
	h.insert(rows + 1)

	w := h.openKept()
	var first []seen
	for len(first) < 7 {
		more, err := w.batch()
		if err != nil {
			t.Fatal(err)
		}
		first = append(first, more...)
	}
	if w.part == 0 {
		t.Fatalf("the transaction is complete after %d events", len(first))
	}
	w.Confirm(w.pos)
	w.close()

	again := h.open(func(o *Options) { o.BatchSize = 3 })
	var got []seen
	for len(got) < rows+1 {
		more, err := again.batch()
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, more...); len(got) == 4 {
			killCursors(t, h)
		}
	}
	if !slices.Equal(ids(got), numbers(1, rows+1)) {
		t.Fatal(ids(got))
	}
	for i, e := range got[:rows] {
		if e.ordinal != uint32(i) || tokenTime(e.commit.Token) != tokenTime(got[0].commit.Token) {
			t.Errorf("event %s: ordinal %d at %s", e.id, e.ordinal, e.commit)
		}
	}
	if got[rows].ordinal != 0 {
		t.Errorf("the event after the transaction has the ordinal %d", got[rows].ordinal)
	}
}

// killCursors ends what the server has open on the outbox, as it would itself in an election.
func killCursors(t *testing.T, h *house) {
	t.Helper()
	admin := h.client.Database("admin")
	cur, err := admin.Aggregate(ctx(t), bson.A{
		bson.D{{Key: "$currentOp", Value: bson.D{{Key: "idleCursors", Value: true}, {Key: "allUsers", Value: true}}}},
		bson.D{{Key: "$match", Value: bson.D{{Key: "ns", Value: h.opt.Namespace()}, {Key: "cursor.cursorId", Value: bson.D{{Key: "$exists", Value: true}}}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var ops []struct {
		Cursor struct {
			ID int64 `bson:"cursorId"`
		} `bson:"cursor"`
	}
	if err := cur.All(ctx(t), &ops); err != nil {
		t.Fatal(err)
	}
	if len(ops) == 0 {
		t.Error("no cursor is open on the outbox")
	}
	for _, op := range ops {
		err := h.client.Database(h.opt.Database).RunCommand(ctx(t), bson.D{
			{Key: "killCursors", Value: h.opt.Collection}, {Key: "cursors", Value: bson.A{op.Cursor.ID}},
		}).Err()
		if err != nil {
			t.Fatal(err)
		}
	}
}

// openCursors counts them.
func openCursors(t *testing.T, h *house) int {
	t.Helper()
	cur, err := h.client.Database("admin").Aggregate(ctx(t), bson.A{
		bson.D{{Key: "$currentOp", Value: bson.D{{Key: "idleCursors", Value: true}, {Key: "allUsers", Value: true}}}},
		bson.D{{Key: "$match", Value: bson.D{{Key: "ns", Value: h.opt.Namespace()}, {Key: "cursor.cursorId", Value: bson.D{{Key: "$exists", Value: true}}}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var all []bson.Raw
	if err := cur.All(ctx(t), &all); err != nil {
		t.Fatal(err)
	}
	return len(all)
}

func TestACancelledStreamLeavesNoCursorOnTheServer(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t))
	h.begin()
	for range 3 {
		w := h.openKept()
		h.insert(1)
		w.events(1)
		if n := openCursors(t, h); n == 0 {
			t.Fatal("a stream that reads has no cursor")
		}
		w.close()
	}
	if n := openCursors(t, h); n != 0 {
		t.Errorf("%d cursors are left", n)
	}
}

func TestDocumentsThatAreNotPendingAreCountedAndLeft(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t))
	h.begin()
	done := append(row(1)[:5:5], bson.E{Key: "status", Value: "published"})
	later := append(row(2), bson.E{Key: "available_at", Value: bson.DateTime(4102444800000)})
	for _, doc := range []bson.D{done, later, row(3)} {
		if _, err := h.outbox.InsertOne(ctx(t), doc); err != nil {
			t.Fatal(err)
		}
	}
	w := h.open(func(o *Options) { o.WriteBack = MarkRows })
	if got := ids(w.events(1)); got[0] != "3" {
		t.Fatal(got)
	}
	w.eventually("both are counted", func() bool { return w.ignored["status"] == 1 && w.ignored["deferred"] == 1 })

	keeps := h.open(func(o *Options) { o.Marker = "other"; o.Bookkeeping = NoBookkeeping })
	keeps.eventually("it reads", func() bool { return keeps.state() == event.StateStreaming })
	if _, err := h.outbox.InsertOne(ctx(t), append(row(4), later[len(later)-1])); err != nil {
		t.Fatal(err)
	}
	if got := ids(keeps.events(1)); got[0] != "4" {
		t.Fatalf("nobody would come back for it: %v", got)
	}
}

func TestATokenThatIsMoreThanItsDigitsIsStoredWhole(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t))
	h.begin()
	w := h.openKept()
	for n := 1; n <= 3; n++ {
		doc := append(bson.D{{Key: "_id", Value: fmt.Sprint(n)}}, row(n)...)
		if n == 2 {
			doc[0].Value = 2.5
		}
		if _, err := h.outbox.InsertOne(ctx(t), doc); err != nil {
			t.Fatal(err)
		}
	}
	got := w.events(3)
	w.Confirm(got[1].commit)
	w.close()
	r := h.record()
	if r.Data != got[1].commit.Token || plainToken(r.Token) {
		t.Fatalf("stored %s (%s), want %s with its bits", r.Token, r.Data, got[1].commit)
	}
	again := h.open()
	if more := ids(again.events(1)); more[0] != "3" {
		t.Fatal(more)
	}
}
