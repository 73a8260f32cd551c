package mongo

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/mongoserver"
)

func basicRow(n int) bson.D {
	return bson.D{
		is("_id", oid(n)), is("aggregate_type", "orders"), is("aggregate_id", fmt.Sprint("k", n%3)), is("event_type", "made"),
		is("payload", bson.D{is("n", n)}), is("created_at", began.Add(time.Duration(n)*time.Millisecond)),
	}
}

func TestBasicRowsComeInTheOrderTheyWereMadeIn(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t), event.Basic, nil)
	if traits := h.Traits(); !traits.States || traits.Retries || traits.Claims {
		t.Fatalf("%+v", traits)
	}
	var rows []any
	for n := 9; n >= 1; n-- {
		rows = append(rows, basicRow(n))
	}
	h.add(rows...)
	h.set(bson.D{is("created_at", began)}, 2, 3, 4)
	h.set(bson.D{is("id", "made-up")}, 5)
	c := h.claim(outbox.Request{Limit: 6, Held: []string{"k0"}, Heads: []string{id(9)}})
	same(t, "claim", rowIDs(c), []string{id(2), id(4), id(1), id(5), id(7), id(8)})
	if string(c.Rows[0].Event.Fields[event.EventID]) != id(2) || string(c.Rows[3].Event.Fields[event.EventID]) != "made-up" {
		t.Fatalf("event ids %q and %q", c.Rows[0].Event.Fields[event.EventID], c.Rows[3].Event.Fields[event.EventID])
	}
	same(t, "a lease takes them again", rowIDs(h.claim(outbox.Request{Limit: 2, Except: []string{id(2), id(3)}})), []string{id(4), id(1)})
	h.set(bson.D{is("published_at", began)}, 4)
	lost := h.settle(
		outbox.Outcome{ID: id(1)}, outbox.Outcome{ID: id(2), Verdict: outbox.Released}, outbox.Outcome{ID: id(3), Verdict: outbox.Failed, Error: "x"},
		outbox.Outcome{ID: id(5), Verdict: outbox.Retry}, outbox.Outcome{ID: id(77)},
	)
	if !slices.Equal(lost, []int{4}) {
		t.Fatalf("lost %v", lost)
	}
	got, at, err := h.Pending(h.ctx(), outbox.Request{Limit: 3})
	if err != nil || at.IsZero() {
		t.Fatal(at, err)
	}
	same(t, "pending", got, []string{id(2), id(5), id(6)})
	m := h.mark(outbox.Mark{ID: id(6), Error: "there is no state failed"}, outbox.Mark{ID: id(4)}, outbox.Mark{ID: id(33)})
	if want := (outbox.Marked{Pending: 1, Settled: 1, Absent: 1}); fmt.Sprint(m) != fmt.Sprint(want) {
		t.Fatalf("marked %+v", m)
	}
	done, err := h.LookUp(h.ctx(), ids(1, 9))
	if err != nil || len(done) != 4 || !done[id(1)] || !done[id(3)] || !done[id(4)] || !done[id(6)] {
		t.Fatal(done, err)
	}
	f, err := h.Figures(h.ctx())
	if err != nil || f.Pending != 5 || f.OldestPending < time.Hour {
		t.Fatalf("%+v, %v", f, err)
	}
	if r, err := h.Retain(h.ctx(), time.Hour, 10); err != nil || r.Rows != 1 {
		t.Fatal(r, err)
	}
	again, err := h.Read(h.ctx(), outbox.Filter{EventID: id(3)})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "read again", rowIDs(again), []string{id(3)})
	if _, err := h.Requeue(h.ctx(), ids(1, 1)); event.ClassOf(err) != event.Halt {
		t.Fatal(err)
	}
	seen := 0
	for s := range 4 {
		seen += len(h.claim(outbox.Request{Limit: 9, Shards: outbox.Shards{Of: 4, Own: []int{s}}}).Rows)
	}
	if seen != 5 {
		t.Fatalf("the shards have %d rows", seen)
	}
}

func TestDebeziumRowsAreDeletedWhenTheyArePublished(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t), event.Debezium, nil)
	if traits := h.Traits(); !traits.States || traits.Retries || traits.Claims {
		t.Fatalf("%+v", traits)
	}
	for n := 5; n >= 1; n-- {
		h.add(bson.D{is("_id", oid(n)), is("aggregatetype", "orders"), is("aggregateid", fmt.Sprint("k", n%2)), is("type", "made"), is("payload", "{}")})
	}
	h.add(bson.D{is("_id", "text"), is("aggregatetype", "orders"), is("type", "made"), is("payload", nil)})
	c := h.claim(outbox.Request{Limit: 9})
	same(t, "claim", rowIDs(c), append([]string{`"text"`}, ids(1, 5)...))
	if r := &c.Rows[0]; r.Key != "text" || r.Event.Fields[event.Payload] != nil {
		t.Fatalf("row %+v", r)
	}
	same(t, "beside held keys", rowIDs(h.claim(outbox.Request{Limit: 9, Held: []string{"k1", "text"}})), []string{id(2), id(4)})
	lost := h.settle(outbox.Outcome{ID: id(1)}, outbox.Outcome{ID: `"text"`}, outbox.Outcome{ID: id(7)}, outbox.Outcome{ID: id(2), Verdict: outbox.Released})
	if !slices.Equal(lost, []int{2}) {
		t.Fatalf("lost %v", lost)
	}
	if m := h.mark(outbox.Mark{ID: id(3)}, outbox.Mark{ID: id(1)}); m.Pending != 1 || m.Absent != 1 {
		t.Fatalf("marked %+v", m)
	}
	same(t, "left", rowIDs(h.claim(outbox.Request{Limit: 9})), []string{id(2), id(4), id(5)})
	if done, err := h.LookUp(h.ctx(), ids(1, 5)); len(done) != 0 || err != nil {
		t.Fatal(done, err)
	}
	if _, err := h.Read(h.ctx(), outbox.Filter{}); event.ClassOf(err) != event.Halt {
		t.Fatal(err)
	}
}

func TestARowThatCannotBeReadIsRefusedAlone(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t), event.Forze, nil)
	h.insert(1, 3, 3)
	h.set(bson.D{is("hlc", "not a number, but text")}, 1)
	h.set(bson.D{is("hlc", 2.5)}, 2)
	c := h.claim(outbox.Request{Limit: 9})
	same(t, "claim", rowIDs(c), []string{id(2), id(3), id(1)}) // numbers before text
	if c.Rows[0].Event.Refused == nil || event.ClassOf(c.Rows[0].Event.Refused) != event.Poison || c.Rows[1].Event.Refused != nil {
		t.Fatalf("refused: %v, %v", c.Rows[0].Event.Refused, c.Rows[1].Event.Refused)
	}
}

func TestWhatNoMethodCanDoWithoutIsSaidAtTheStart(t *testing.T) {
	t.Parallel()
	srv := mongoserver.Shared(t)
	h := newHouse(t, srv, event.Forze, nil)
	schema, err := event.NewSchema(event.Forze, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.c.Database().CreateView(h.ctx(), "view", "outbox", bson.A{}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"nowhere": "does not exist", "view": "is a view"} {
		o := h.db.o
		o.Collection, o.Schema = name, schema
		db := New(o)
		_, err := db.Tables(h.ctx())
		var e *event.Error
		if !errors.As(err, &e) || e.Class != event.Halt || e.Remedy == "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
		_ = db.Close(h.ctx())
	}
	keep, _ := h.another(event.Forze, func(o *Options) { o.AfterPublish = Keep })
	if _, err := keep.Claim(h.ctx(), outbox.Request{Limit: 1}); event.ClassOf(err) != event.Halt {
		t.Fatal(err)
	}
	if m, err := keep.Mark(h.ctx(), []outbox.Mark{{ID: id(1)}}); m.Settled != 1 || err != nil || keep.Traits().States {
		t.Fatal(m, err)
	}
}
