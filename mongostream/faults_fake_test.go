package mongostream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/test/mongofake"
)

// The table of mongo.md 1.9, whether the driver would have resumed or not, with labels and
// without: the stream is opened again behind the last event, always by startAfter.
func TestEveryPassingErrorIsReadOnAfterWithoutLossOrRepetition(t *testing.T) {
	t.Parallel()
	faults := map[string]mongofake.Answer{"a broken connection": mongofake.Drop()}
	for _, code := range []int32{6, 7, 43, 50, 63, 89, 91, 112, 133, 134, 136, 150, 175, 189, 202, 216, 234, 237, 246, 262, 9001, 10107, 11600, 11601, 11602, 13388, 13435, 13436} {
		faults[fmt.Sprint(code)] = mongofake.Fail(code, "a fault")
		faults[fmt.Sprint(code, " labelled")] = mongofake.Fail(code, "a fault", "ResumableChangeStreamError")
	}
	faults["a pool that was cleared"] = mongofake.Fail(0, "connection pool was cleared", "TransientTransactionError")
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newFakeHouse(t)
			h.fake.Script("getMore", mongofake.Default(), fault)
			h.emit(1, 2, 3)
			w := h.open()
			if got := ids(w.events(3)); !slices.Equal(got, numbers(1, 3)) {
				t.Fatal(got)
			}
			opens := h.opens()
			if len(opens) != 2 || opens[0] != h.from || tokenTime(opens[1]) != second(2) {
				t.Errorf("opened at %v, want the remembered position and behind event 1", opens)
			}
			if n := h.fake.OpenCursors(); n > 2 {
				t.Errorf("%d cursors are open", n)
			}
			w.Confirm(w.pos)
			w.close()
			if saved := h.positions(); len(saved) == 0 || saved[len(saved)-1] != w.pos.Token {
				t.Errorf("stored %v, want %s", saved, w.pos)
			}
		})
		if name == "136" || name == "136 labelled" {
			continue
		}
		t.Run(name+" while opening", func(t *testing.T) {
			t.Parallel()
			h := newFakeHouse(t)
			h.fake.Script("aggregate", fault, fault, fault)
			h.emit(1)
			if got := ids(h.open().events(1)); got[0] != "1" {
				t.Fatal(got)
			}
			for _, open := range h.opens() {
				if open != h.from {
					t.Errorf("opened at %q", open)
				}
			}
		})
	}
}

func TestALostPositionHaltsAndIsNeverGivenUpForThePresent(t *testing.T) {
	t.Parallel()
	for _, code := range []int32{286, 260, 50811, 280, 136} {
		for _, command := range []string{"aggregate", "getMore"} {
			t.Run(fmt.Sprint(code, command), func(t *testing.T) {
				t.Parallel()
				h := newFakeHouse(t)
				fault := mongofake.Fail(code, "the position", "NonResumableChangeStreamError")
				h.fake.Script(command, fault, fault) // the second for the codes that are given a second chance
				h.emit(1)
				w := h.open()
				got, err := w.failure()
				wantGap(t, err, AnchorPositionLost, "position")
				if len(got) > 0 || len(h.positions()) > 0 {
					t.Errorf("read %v, stored %v", ids(got), h.positions())
				}
				for _, open := range h.opens() {
					if open == "" {
						t.Error("opened at the present")
					}
				}
			})
		}
	}
}

// After the end of a collection the driver itself would resume by resumeAfter, which no
// server takes behind an invalidate event: 260, and for good.
func TestABrokenConnectionBehindADropIsTakenUpWithStartAfter(t *testing.T) {
	t.Parallel()
	h := newFakeHouse(t)
	dropped := h.change(2)
	dropped[1].Value = "drop"
	invalidate := h.change(2)
	token := strings.Replace(tokenTextOf(dropped), "2B022C0100296E", "2B022C0100296F", 1)
	invalidate[0].Value, invalidate[1].Value = bson.D{{Key: "_data", Value: token}}, "invalidate"
	h.fake.Emit(h.change(1))
	h.fake.Emit(dropped, invalidate)
	h.fake.Handle("killCursors", func(mongofake.Command) mongofake.Answer { return mongofake.OK() })
	w := h.open(func(o *Options) { o.OnDrop = DropContinue })
	w.events(1)
	h.fake.Await(t, "getMore", 3)
	h.fake.KillCursors() // the server closes the cursor itself; here it is not found, which is as good
	h.fake.Disconnect()
	h.emit(3)
	if got := ids(w.events(1)); got[0] != "3" {
		t.Fatal(got)
	}
	if opens := h.opens(); opens[len(opens)-1] < token || slices.Contains(opens, "resumeAfter") {
		t.Errorf("opened at %v, want behind %s", opens, token)
	}
}

func tokenTextOf(e bson.D) string { return e[0].Value.(bson.D)[0].Value.(string) }

func TestAnEventThatBreaksEachConnectionIsNamedAfterAFewAttempts(t *testing.T) {
	t.Parallel()
	h := newFakeHouse(t)
	h.emit(1)
	h.fake.Handle("getMore", func(mongofake.Command) mongofake.Answer { return mongofake.Drop() })
	w := h.open()
	w.eventually("the place is blamed", func() bool {
		return len(w.reasons) > 0 && strings.Contains(w.reasons[len(w.reasons)-1].What, "times at the same position")
	})
}

func TestAnEventThatIsTooLargeHalts(t *testing.T) {
	t.Parallel()
	h := newFakeHouse(t)
	h.emit(1, 2, 3)
	// The answer with events 2 and 3 fails, although 2 is well; then that of 3 alone.
	large := mongofake.Fail(10334, "BSONObj size is invalid")
	h.fake.Script("getMore", mongofake.Default(), large, mongofake.Default(), large, large)
	w := h.open()
	got, err := w.failure()
	var e *event.Error
	if !errors.As(err, &e) || e.Class != event.Halt || e.Anchor != AnchorOversize || !strings.Contains(e.Remedy, "position set") {
		t.Fatal(err)
	}
	if !slices.Equal(ids(got), []string{"1", "2"}) {
		t.Error(ids(got))
	}
}

// A look-alike, or an old server: positions are those of events alone, and nothing is no position.
func TestAnAbsentPostBatchTokenOverwritesNothing(t *testing.T) {
	t.Parallel()
	h := newFakeHouse(t)
	h.fake.Handle("getMore", func(c mongofake.Command) mongofake.Answer {
		batch := bson.A{}
		if len(h.fake.Received("getMore")) == 3 {
			batch = append(batch, h.change(1))
		}
		return mongofake.OK(bson.E{Key: "cursor", Value: bson.D{{Key: "id", Value: int64(7)}, {Key: "ns", Value: "shop.outbox"}, {Key: "nextBatch", Value: batch}}})
	})
	w := h.open()
	if got := ids(w.events(1)); got[0] != "1" {
		t.Fatal(got)
	}
	w.Confirm(w.pos)
	h.fake.Disconnect()
	h.fake.Await(t, "aggregate", 2)
	w.close()
	if saved := h.positions(); !slices.Equal(saved, []string{w.pos.Token}) {
		t.Errorf("stored %v, want %s", saved, w.pos)
	}
	if opens := h.opens(); opens[1] != w.pos.Token {
		t.Errorf("opened at %v", opens)
	}
}

func TestAfterQuietTheStreamIsTakenUpAtTheLastPlaceAndNotBefore(t *testing.T) {
	t.Parallel()
	h := newFakeHouse(t)
	w := h.open()
	h.emit(1)
	w.events(1)
	idle := mongofake.IdleToken(second(100))
	h.fake.Advance(idle)
	w.idle(event.AtToken(idle))
	h.fake.Disconnect()
	h.fake.Await(t, "aggregate", 2)
	if opens := h.opens(); opens[1] != idle {
		t.Errorf("opened at %v, want %s", opens, idle)
	}
}

// A server that looks through its log for minutes is let look, and can be left at any time.
func TestASlowOpenIsWaitedForAndCanBeLeft(t *testing.T) {
	t.Parallel()
	h := newFakeHouse(t)
	released := make(chan struct{})
	h.fake.Script("aggregate", mongofake.Hold(released, mongofake.Default()))
	h.emit(1)
	w := h.open()
	h.fake.Await(t, "aggregate", 1)
	if ms, set := h.fake.Received("aggregate")[0].Lookup("maxTimeMS").AsInt64OK(); set {
		t.Errorf("the server is given %d ms", ms)
	}
	close(released)
	w.events(1)

	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	h.fake.Script("getMore", mongofake.Hold(never, mongofake.Default()))
	h.fake.Await(t, "getMore", len(h.fake.Received("getMore"))+1)
	began := time.Now()
	w.close()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("closing took %v", took)
	}
	if n := h.fake.OpenCursors(); n != 0 {
		t.Errorf("%d cursors are left open", n)
	}
}

// The open asks for no event, so that it comes back at once; then few are asked for, and more.
func TestFewEventsAreAskedForAtFirst(t *testing.T) {
	t.Parallel()
	h := newFakeHouse(t)
	h.fake.Emit(func() (all []any) {
		for n := 1; n <= 60; n++ {
			all = append(all, h.change(n))
		}
		return all
	}()...)
	w := h.open(func(o *Options) { o.BatchSize = 16 })
	w.events(60)
	if n, _ := h.fake.Received("aggregate")[0].Lookup("cursor", "batchSize").AsInt64OK(); n != 0 {
		t.Errorf("the open asks for %d events", n)
	}
	var asked []int64
	for _, c := range h.fake.Received("getMore")[:6] {
		n, _ := c.Lookup("batchSize").AsInt64OK()
		asked = append(asked, n)
	}
	if !slices.Equal(asked, []int64{1, 2, 4, 8, 16, 16}) {
		t.Errorf("asked for %v", asked)
	}
}

func TestUnknownEventsAndFieldsArePassedOver(t *testing.T) {
	t.Parallel()
	h := newFakeHouse(t)
	strange := h.change(1)
	strange[1].Value = "reshardCollection"
	extended := append(h.change(2), bson.E{Key: "nsType", Value: "collection"}, bson.E{Key: "collectionUUID", Value: bson.Binary{Subtype: 4, Data: make([]byte, 16)}},
		bson.E{Key: "pattern", Value: bson.NewDecimal128(1, 2)})
	h.fake.Emit(strange)
	h.fake.Emit(extended)
	w := h.open()
	if got := ids(w.events(1)); got[0] != "2" {
		t.Fatal(got)
	}
	w.eventually("it is counted", func() bool { return w.ignored["reshardCollection"] == 1 })
}

// Each refused login is a connection; they must not pile up.
func TestAMissingRightDoesNotPileUpConnections(t *testing.T) {
	t.Parallel()
	h := newFakeHouse(t)
	h.fake.Handle("aggregate", func(mongofake.Command) mongofake.Answer {
		return mongofake.Fail(13, "not authorized on shop to execute command { aggregate }")
	})
	w := h.open()
	w.eventually("it halts", func() bool { return w.state() == event.StateHalted })
	w.eventually("the right is named", func() bool { return w.reasons[len(w.reasons)-1].Anchor == AnchorRights })
	if n := h.fake.Connections(); n > 6 {
		t.Errorf("%d connections are open", n)
	}
}

func TestAPositionThatCannotBeStoredIsSaidAndStopsReadingOnceTheLeaseHasRunOut(t *testing.T) {
	t.Parallel()
	h := newFakeHouse(t)
	h.opt.LeaseTTL = 300 * time.Millisecond
	w := h.open()
	h.emit(1)
	w.events(1)
	h.mu.Lock()
	h.fails = true
	h.mu.Unlock()
	w.Confirm(w.pos)
	w.eventually("it stops", func() bool { return w.state() == event.StateDisconnected })
	h.emit(2)
	h.mu.Lock()
	h.fails = false
	h.mu.Unlock()
	if got := ids(w.events(1)); got[0] != "2" {
		t.Fatal(got)
	}
}

// The transaction of one session is cut by answers; what ends it is another event or silence.
func TestATransactionEndsWithAnotherEventOrWithSilence(t *testing.T) {
	t.Parallel()
	h := newFakeHouse(t)
	inTxn := func(session byte, number int64, sec uint32, ns ...int) []any {
		var all []bson.D
		for i, n := range ns {
			all = append(all, mongofake.Insert("shop", "outbox", second(sec), i, append(bson.D{{Key: "_id", Value: n}}, row(n)...)))
		}
		return mongofake.Transaction(session, number, all...)
	}
	h.fake.Emit(inTxn(1, 1, 2, 1, 2, 3, 4, 5)...)
	h.fake.Emit(inTxn(2, 1, 3, 6, 7)...)
	h.fake.Emit(inTxn(2, 2, 4, 8)...)
	h.emit(9)
	h.fake.Emit(inTxn(2, 3, 20, 10, 11)...)
	w := h.open()
	got := w.events(11)
	var ordinals []uint32
	for _, e := range got {
		ordinals = append(ordinals, e.ordinal)
	}
	if !slices.Equal(ids(got), numbers(1, 11)) || !slices.Equal(ordinals, []uint32{0, 1, 2, 3, 4, 0, 1, 0, 0, 0, 1}) {
		t.Fatalf("%v with ordinals %v", ids(got), ordinals)
	}
	if w.pos != got[10].commit {
		t.Errorf("the position is %s, want that of the last event, %s", w.pos, got[10].commit)
	}
}

func TestFinishLetsTheTransactionAtHandComplete(t *testing.T) {
	t.Parallel()
	h := newFakeHouse(t)
	var all []bson.D
	for n := 1; n <= 6; n++ {
		all = append(all, mongofake.Insert("shop", "outbox", second(2), n, append(bson.D{{Key: "_id", Value: n}}, row(n)...)))
	}
	h.fake.Emit(mongofake.Transaction(1, 1, all...)...)
	h.emit(7)
	w := h.open()
	first, err := w.batch()
	if err != nil || len(first) == 0 || w.part == 0 {
		t.Fatal(first, err)
	}
	w.Finish()
	got := first
	for {
		more, err := w.batch()
		if err != nil {
			break
		}
		got = append(got, more...)
	}
	if w.part != 0 || len(got) < 6 || !slices.Equal(ids(got[:6]), numbers(1, 6)) {
		t.Fatalf("ended after %v, with %d of a transaction", ids(got), w.part)
	}
}

// What the caller holds is not acknowledged yet: beyond the bound no answer is asked for.
func TestMemoryInFlightIsBounded(t *testing.T) {
	t.Parallel()
	h := newFakeHouse(t)
	h.emit(1, 2, 3)
	w := h.open(func(o *Options) { o.InFlightBytes = 1 })
	b, err := w.Next(ctx(t))
	for err == nil && len(b.Events) == 0 {
		b.Memory.Release()
		b, err = w.Next(ctx(t))
	}
	if err != nil || len(b.Events) != 1 || w.InFlightBytes() == 0 {
		t.Fatalf("%+v %v, %d bytes in flight", b, err, w.InFlightBytes())
	}
	mem := b.Memory
	short, cancel := context.WithTimeout(ctx(t), 300*time.Millisecond)
	defer cancel()
	if b, err = w.Next(short); err == nil && len(b.Events) > 0 {
		t.Fatalf("%s came although nothing was let go", b.Events[0].Fields[event.EventID])
	}
	mem.Release()
	if got := ids(w.events(2)); !slices.Equal(got, numbers(2, 3)) {
		t.Fatal(got)
	}
	idle := mongofake.IdleToken(second(100))
	h.fake.Advance(idle)
	w.idle(event.AtToken(idle))
	if n := w.InFlightBytes(); n != 0 {
		t.Errorf("%d bytes are still in flight", n)
	}
}
