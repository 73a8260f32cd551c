package mongo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/mongostream"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/mongoserver"
)

// parked is event n of a key, as the stream would bring it.
func (h *house) parked(n int, key string) outbox.Parked {
	return outbox.Parked{
		Relation: h.Relation(), Row: oid(n).Hex(), EventID: fmt.Sprint("e", n), Route: "r", Key: key, Topic: "shop.orders",
		Commit: event.AtToken(fmt.Sprintf("82%08X00000001", n)), Reason: "too_large", Error: "no",
		Record: &event.Record{Topic: "shop.orders", Key: []byte(key), Value: fmt.Appendf(nil, `{"n": %d}`, n)},
	}
}

// message is the same without a row.
func (h *house) message(n int, key string) outbox.Parked {
	p := h.parked(n, key)
	p.Relation, p.Row = "outbox", ""
	return p
}

func (h *house) wantEntries(k *Parking, want string) {
	h.t.Helper()
	list, err := k.List(h.ctx(), outbox.ParkedFilter{})
	if err != nil {
		h.t.Fatal(err)
	}
	var words []string
	for _, p := range list {
		words = append(words, fmt.Sprint(p.EventID, ":", p.State, ":", p.Whole))
	}
	if got := strings.Join(words, " "); got != want {
		h.t.Fatalf("entries %s, want %s", got, want)
	}
}

// cutOff makes the server drop the connection, or answer with an error, for a command.
func cutOff(t *testing.T, srv *mongoserver.Server, times int, what ...bson.E) {
	t.Helper()
	srv.FailPoint(t, 0, "failCommand", op("times", times), append(bson.D{}, what...))
}

func TestAParkedEventIsThereOnceWhateverAnswerIsLost(t *testing.T) {
	t.Parallel()
	srv := mongoserver.Start(t, mongoserver.Options{TestCommands: true})
	h := newHouse(t, srv, event.Forze, nil)
	h.insert(1, 9, 9)
	k := h.db.Parking()
	var want strings.Builder
	for n, commands := range []bson.A{
		{"commitTransaction"}, {"insert"}, {"update"}, {"findAndModify"}, {"find"}, {"commitTransaction", "insert"},
	} {
		p := h.parked(n+1, fmt.Sprint("k", n))
		for _, fault := range []bson.E{
			is("closeConnection", true), is("errorCode", 112), is("writeConcernError", bson.D{is("code", 64), is("errmsg", "late")}),
		} {
			if fault.Key == "writeConcernError" && commands[0] != "commitTransaction" {
				continue
			}
			cutOff(t, srv, 1, is("failCommands", commands), fault)
			// What passes is tried again here; the rest by the caller.
			err := k.Park(h.ctx(), p)
			for try := 0; err != nil && event.ClassOf(err) == event.Retry && try < 5; try++ {
				err = k.Park(h.ctx(), p)
			}
			if err != nil {
				t.Fatalf("%v and %v: %v", commands, fault, err)
			}
		}
		want.WriteString(fmt.Sprintf("e%d:parked:false ", n+1))
		h.wantEntries(k, strings.TrimSpace(want.String()))
		h.wantRow(n+1, "failed attempts=0 error=no")
	}
}

// An application's transaction has written to the row and not ended.
func TestParkingWaitsForARowThatSomebodyWritesTo(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t), event.Forze, nil)
	h.insert(1, 1, 1)
	k := h.db.Parking()
	session, err := h.c.Database().Client().StartSession()
	if err != nil {
		t.Fatal(err)
	}
	defer session.EndSession(h.ctx())
	if err := session.StartTransaction(); err != nil {
		t.Fatal(err)
	}
	if _, err := h.c.UpdateOne(driver.NewSessionContext(h.ctx(), session), bson.D{is(fieldID, oid(1))}, op("$set", bson.D{is("traceparent", "x")})); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	brief, cancel := context.WithTimeout(h.ctx(), 300*time.Millisecond)
	defer cancel()
	err = k.Park(brief, h.parked(1, "k"))
	if took := time.Since(began); err == nil || event.ClassOf(err) != event.Retry || took < 250*time.Millisecond {
		t.Fatalf("beside the lock, after %v: %v", took, err)
	}
	h.wantEntries(k, "")
	parked := make(chan error)
	go func() { parked <- k.Park(h.ctx(), h.parked(1, "k")) }()
	if err := session.CommitTransaction(h.ctx()); err != nil {
		t.Fatal(err)
	}
	if err := <-parked; err != nil {
		t.Fatal(err)
	}
	h.wantEntries(k, "e1:parked:false")
	h.wantRow(1, "failed attempts=0 error=no")
}

func TestAServerThatSaysNothingDoesNotHoldTheCaller(t *testing.T) {
	t.Parallel()
	srv := mongoserver.Start(t, mongoserver.Options{})
	h := newHouse(t, srv, event.Forze, nil)
	h.insert(1, 1, 1)
	k, l := h.db.Parking(), h.db.Leases()
	if _, err := k.Held(h.ctx()); err != nil {
		t.Fatal(err)
	}
	srv.Pause(t)
	defer srv.Continue(t)
	for name, f := range map[string]func(ctx context.Context) error{
		"Park": func(ctx context.Context) error { return k.Park(ctx, h.parked(1, "k")) },
		"Held": func(ctx context.Context) error { _, err := k.Held(ctx); return err },
		"Renew": func(ctx context.Context) error {
			_, err := l.Renew(ctx, "a", time.Minute, outbox.LeaseRequest{Of: 2, Want: 2})
			return err
		},
	} {
		began := time.Now()
		ctx, cancel := context.WithTimeout(h.ctx(), 200*time.Millisecond)
		err := f(ctx)
		cancel()
		if took := time.Since(began); err == nil || event.ClassOf(err) != event.Retry || took > 15*time.Second {
			t.Errorf("%s came back after %v: %v", name, took, err)
		}
	}
}

func TestParkingAndLeasesWorkOnAServerWithoutTransactions(t *testing.T) {
	t.Parallel()
	srv := mongoserver.Start(t, mongoserver.Options{Standalone: true})
	h := newHouse(t, srv, event.Forze, nil)
	h.insert(1, 3, 3)
	k := h.db.Parking()
	for _, err := range []error{
		k.Park(h.ctx(), h.parked(1, "a")), k.Park(h.ctx(), h.parked(1, "a")), k.LeaveBehind(h.ctx(), h.message(4, "a")),
		k.LeaveBehind(h.ctx(), h.parked(2, "a")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	h.wantEntries(k, "e1:parked:false e4:behind:true e2:behind:true")
	h.wantRow(1, "failed attempts=0 error=no")
	h.wantRow(2, "published attempts=0 published_at")
	whole := func(want int) {
		t.Helper()
		if list, err := k.Whole(h.ctx(), 10); err != nil || len(list) != want {
			t.Fatalf("%d may go, want %d: %v", len(list), want, err)
		}
	}
	whole(0)
	if n, err := k.Retry(h.ctx(), []int64{1}); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	h.wantRow(1, "pending attempts=0")
	h.mark(outbox.Mark{ID: oid(1).Hex()})
	if held, err := k.Held(h.ctx()); err != nil || len(held) != 1 || !held[0].Behind {
		t.Fatalf("%+v, %v", held, err)
	}
	whole(2)
	if s, err := h.db.Leases().Renew(h.ctx(), "a", time.Minute, outbox.LeaseRequest{Of: 2, Want: 2}); err != nil || len(s.Own) != 2 {
		t.Fatalf("%+v, %v", s, err)
	}
}

func TestEventTooLargeForADocumentHaltsWithARemedy(t *testing.T) {
	t.Parallel()
	srv := mongoserver.Start(t, mongoserver.Options{CacheMB: 1024}) // with less, a transaction of that size does not fit
	h := newHouse(t, srv, event.Forze, nil)
	k := h.db.Parking()
	p := h.message(1, "k")
	p.Record.Value = make([]byte, mostWhole-1000)
	if err := k.Park(h.ctx(), p); err != nil {
		t.Fatal(err)
	}
	p = h.message(2, "k")
	p.Record.Value = make([]byte, 16<<20)
	var e *event.Error
	if err := k.Park(h.ctx(), p); !errors.As(err, &e) || e.Class != event.Halt || e.Anchor != anchorParkingFull || e.Remedy == "" {
		t.Fatalf("%v", err)
	}
}

// The least that a claim's answer must survive: a renewal that nobody heard the answer of.
func TestATenureIsNotLostWithAnAnswer(t *testing.T) {
	t.Parallel()
	srv := mongoserver.Start(t, mongoserver.Options{TestCommands: true})
	h := newHouse(t, srv, event.Forze, nil)
	l := h.db.Leases()
	renew := func(holder string, ttl time.Duration) outbox.LeaseState {
		t.Helper()
		s, err := l.Renew(h.ctx(), holder, ttl, outbox.LeaseRequest{Of: 2, Want: 2})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	renew("a", time.Millisecond)
	cutOff(t, srv, 1, is("failCommands", bson.A{"findAndModify"}), is("writeConcernError", bson.D{is("code", 262), is("errmsg", "late")}))
	if s := renew("b", time.Minute); len(s.Own) != 2 || len(s.Tenures) != 2 {
		t.Fatalf("%+v", s)
	}
}

// The keys that are held are looked for every few seconds; what is kept whole may be a lot.
func TestHeldKeysAreReadWithoutTheEventsThatHoldThem(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t), event.Forze, nil)
	o := mongostream.Options{
		Source: "orders", URL: h.srv.URL(), Database: h.name, Collection: "outbox", Schema: h.db.o.Schema, Holder: "test", Capture: mongostream.CapturePoll,
	}
	if _, err := mongostream.Apply(h.ctx(), h.c.Database().Client(), o); err != nil {
		t.Fatal(err)
	}
	k := h.db.Parking()
	for n := range 20 {
		if err := k.Park(h.ctx(), h.message(n, fmt.Sprint("k", n%7))); err != nil {
			t.Fatal(err)
		}
	}
	var explained bson.Raw
	if err := h.c.Database().RunCommand(h.ctx(), bson.D{is("explain", bson.D{
		is("find", "walrelay_parked"), is("filter", k.ours()), is("projection", entryFields),
	}), is("verbosity", "executionStats")}).Decode(&explained); err != nil {
		t.Fatal(err)
	}
	stats := explained.Lookup("executionStats").Document()
	if keys, docs := stats.Lookup("totalKeysExamined").AsInt64(), stats.Lookup("totalDocsExamined").AsInt64(); keys != 20 || docs != 0 {
		t.Fatalf("%d keys of an index and %d documents were read for 20 entries", keys, docs)
	}
}
