package mongo

import (
	"fmt"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/mongoserver"
)

func TestMarkWritesPendingAndForeignRowsAndLeavesTheOthersAlone(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t), event.Forze, nil)
	h.insert(1, 6, 10)
	h.set(bson.D{is("status", processing), is("processing_at", time.Now()), is("attempts", 1), is("last_error", "old")}, 2)
	h.set(bson.D{is("status", failed), is("last_error", "why")}, 3)
	h.set(bson.D{is("status", published), is("published_at", began)}, 4)
	marks := []outbox.Mark{
		{ID: id(6), Error: "$dead\x00 letter \xff"}, {ID: id(1)}, {ID: id(2)}, {ID: id(3)}, {ID: id(4)}, {ID: id(99), Xid: 3}, {ID: "no id"}, {ID: id(1)},
	}
	m := h.mark(marks...)
	if want := (outbox.Marked{Pending: 2, Foreign: 1, Settled: 3, Absent: 2}); fmt.Sprint(m) != fmt.Sprint(want) {
		t.Fatalf("marked %+v, want %+v", m, want)
	}
	h.wantRow(1, "published attempts=0 published_at")
	h.wantRow(2, "published attempts=1 published_at processing_at")
	h.wantRow(3, "failed attempts=0 error=why")
	h.wantRow(4, "published attempts=0 published_at")
	h.wantRow(5, "pending attempts=0")
	h.wantRow(6, "failed attempts=0 error=$dead\\0 letter \uFFFD")
	if !h.doc(4).Lookup("published_at").Time().Equal(began) {
		t.Fatal("a published row was published again")
	}
	m = h.mark(marks...)
	if want := (outbox.Marked{Settled: 6, Absent: 2}); fmt.Sprint(m) != fmt.Sprint(want) {
		t.Fatalf("marked again %+v, want %+v", m, want)
	}
}

func TestMarkDeletesWhereThatIsTheWayAndKeepsWhatFailed(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t), event.Forze, func(o *Options) { o.AfterPublish = Delete })
	h.insert(1, 3, 10)
	m := h.mark(outbox.Mark{ID: id(1)}, outbox.Mark{ID: id(2), Error: "no"}, outbox.Mark{ID: id(1)}, outbox.Mark{ID: id(9)})
	if want := (outbox.Marked{Pending: 2, Settled: 1, Absent: 1}); fmt.Sprint(m) != fmt.Sprint(want) {
		t.Fatalf("marked %+v", m)
	}
	h.wantRow(2, "failed attempts=0 error=no")
	h.wantRow(3, "pending attempts=0")
	if n, err := h.c.CountDocuments(h.ctx(), bson.D{}); n != 2 || err != nil {
		t.Fatalf("%d rows are left: %v", n, err)
	}
	if m := h.mark(outbox.Mark{ID: id(1)}, outbox.Mark{ID: id(2)}); m.Absent != 1 || m.Settled != 1 {
		t.Fatalf("marked again %+v", m)
	}
}

func TestLookUpNamesWhatIsThereAndNotPending(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t), event.Forze, nil)
	h.insert(1, 4, 10)
	for n, state := range []string{pending, processing, published, failed} {
		h.set(bson.D{is("status", state)}, n+1)
	}
	done, err := h.LookUp(h.ctx(), append(ids(1, 9), "?"))
	if err != nil || len(done) != 3 || !done[id(2)] || !done[id(3)] || !done[id(4)] {
		t.Fatalf("%v, %v", done, err)
	}
}

func TestPendingReadsTheEndOfTheLogAfterTheRows(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t), event.Forze, nil)
	stream, err := h.c.Watch(h.ctx(), bson.A{})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close(h.ctx())
	h.insert(1, 5, 10)
	h.set(bson.D{is("available_at", time.Now().Add(time.Hour))}, 2)
	h.set(bson.D{is("available_at", time.Now().Add(-time.Hour))}, 4)
	got, at, err := h.Pending(h.ctx(), outbox.Request{Limit: 3})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "pending", got, []string{id(1), id(3), id(4)})
	h.insert(6, 6, 10)
	for n := range 8 { // five insertions, two updates, and what came after the look
		if !stream.Next(h.ctx()) {
			t.Fatal(stream.Err())
		}
		token := event.AtToken(stream.ResumeToken().Lookup("_data").StringValue())
		if before := token.Compare(at) < 0; before != (n < 7) {
			t.Fatalf("event %d has %s, the end was %s", n, token, at)
		}
	}
	got, at, err = h.Pending(h.ctx(), outbox.Request{Limit: 4, Held: []string{"k1", "k3"}, Heads: []string{id(3)}})
	if err != nil || at.IsZero() {
		t.Fatal(at, err)
	}
	same(t, "pending beside held keys", got, []string{id(3), id(4), id(5), id(6)})
	got, at, err = h.Pending(h.ctx(), outbox.Request{Limit: 4, Shards: outbox.Shards{Of: 4}})
	if err != nil || len(got) > 0 || at.IsZero() {
		t.Fatalf("without a shard: %v at %s: %v", got, at, err)
	}
}
