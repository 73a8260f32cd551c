package mongo

// Cases C65 and C67 with the checkpoint in a real database.

import (
	"errors"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/hlc"
	"github.com/walrelay/walrelay/test/mongoserver"
)

// C67, restart from an old snapshot (theinterfold/interfold#1669): the wall clock is
// ahead by 2 s, 10 000 stamps go out, the process dies, the wall clock is set right.
// The first stamp after the start is greater than the greatest that is durable. Here
// the process dies with a transaction open.
func TestProcessGoesOnAboveTheGreatestDurableStamp(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	wall := time.Now()
	fast := func() time.Time { return wall.Add(2 * time.Second) }
	x := h.open(Options{}, fast)
	var durable hlc.Stamp
	for range 20 {
		durable = h.flush(x, some(500)...).Mark
	}
	w := h.begin()
	lost, err := x.Flush(w.ctx, h.stage(x.Buffer(), some(1)...))
	if err != nil {
		t.Fatal(err)
	}
	w.rollback() // what the server does with the session of a dead process
	h.load(durable, true)
	if lost.Mark != durable+1 {
		t.Fatalf("greatest durable stamp %s, lost %s", durable, lost.Mark)
	}

	x = h.open(Options{}, func() time.Time { return wall })
	if res := h.flush(x, some(1)...); res.Mark != durable+1 {
		t.Errorf("the first stamp after the start is %s, the greatest durable one was %s", res.Mark, durable)
	}
	if lead := x.Clock().Lead(); lead < 1900*time.Millisecond || lead > 2100*time.Millisecond {
		t.Errorf("the clock leads by %s, want about 2 s", lead)
	}
	// Without the checkpoint it would repeat itself.
	if s := h.open(Options{NoCheckpoint: true}, func() time.Time { return wall }).Clock().Now(); s >= durable {
		t.Errorf("stamp %s without a checkpoint: the test proves nothing", s)
	}
}

// A mark that was committed outlives the server's death.
func TestMarkOutlivesAKilledServer(t *testing.T) {
	t.Parallel()
	s := mongoserver.Start(t, mongoserver.Options{})
	h := &house{t, s.Client(t).Database("shop")}
	if err := Init(t.Context(), h.db, Options{}); err != nil {
		t.Fatal(err)
	}
	x := h.open(Options{})
	res := h.flush(x, some(3)...)
	s.Kill(t)
	s.StartAgain(t)
	h.load(res.Mark, true)
	h.count(3)
	if next := h.flush(x, some(1)...); next.Mark <= res.Mark {
		t.Errorf("mark %s after %s", next.Mark, res.Mark)
	}
}

// A server that is killed under a transaction has nothing of it, and the same buffer
// can be flushed when it is back.
func TestFlushThatAKilledServerCutShortCanBeRepeated(t *testing.T) {
	t.Parallel()
	s := mongoserver.Start(t, mongoserver.Options{})
	h := &house{t, s.Client(t).Database("shop")}
	if err := Init(t.Context(), h.db, Options{}); err != nil {
		t.Fatal(err)
	}
	x := h.open(Options{})
	h.flush(x, some(1)...)
	b := h.stage(x.Buffer(), some(2)...)
	w := h.begin()
	if _, err := h.db.Collection("orders").InsertOne(w.ctx, map[string]int{"n": 1}); err != nil {
		t.Fatal(err)
	}
	s.Kill(t)
	s.StartAgain(t)
	_, err := x.Flush(w.ctx, b)
	if !sentBack(err) || b.Len() != 2 {
		t.Errorf("%v, %d left in the buffer, want one that leads to another attempt, and 2", err, b.Len())
	}
	_ = w.s.AbortTransaction(w.ctx)
	w = h.begin()
	if res, err := x.Flush(w.ctx, b); err != nil || res.Written != 2 {
		t.Errorf("%+v %v", res, err)
	}
	w.commit()
	h.count(3)
}

// C65, a poisoned stamp from the future (yugabyte/yugabyte-db#10628 and others): what
// is refused leaves no trace in the documents or the checkpoint, also after a restart.
func TestPoisonedStampLeavesNoTraceOverARestart(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	x := h.open(Options{})
	now, refused := time.Now(), 0
	for _, at := range []time.Time{now.Add(24 * time.Hour), now.AddDate(10, 0, 0), time.UnixMilli(hlc.MaxPhysical)} {
		s := stamp(at.UnixMilli(), hlc.MaxLogical)
		if _, err := x.Clock().Observe(s); errors.As(err, new(*hlc.DriftError)) {
			refused++
		}
		h.flush(x, some(34)...)
	}
	if refused != 3 {
		t.Errorf("%d of 3 were refused", refused)
	}
	mark, _, err := Checkpoint{}.Load(t.Context(), h.db)
	if err != nil {
		t.Fatal(err)
	}
	x = h.open(Options{})
	if lead := x.Clock().Lead(); lead > time.Second {
		t.Errorf("after a restart the clock leads by %s", lead)
	}
	if s := x.Clock().Now(); s <= mark || time.Since(time.UnixMilli(s.PhysicalMillis())).Abs() > time.Second {
		t.Errorf("first stamp %s after mark %s at %s", s, mark, time.Now().UTC())
	}
}

// A server that is no replica set has no transactions; the answer says so.
func TestStandaloneServerIsRefusedByItsOwnAnswer(t *testing.T) {
	t.Parallel()
	s := mongoserver.Start(t, mongoserver.Options{Standalone: true})
	h := &house{t, s.Client(t).Database("shop")}
	x := h.open(Options{})
	w := h.begin()
	_, err := x.Flush(w.ctx, h.stage(x.Buffer(), some(1)...))
	e, ok := errors.AsType[mongo.CommandError](err)
	if !ok || e.Code != 20 {
		t.Errorf("%v, want that transactions are for replica sets", err)
	}
	h.count(0)
}
