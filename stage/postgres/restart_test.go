package postgres

// Cases C65 and C67 with the checkpoint in a real database.

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/walrelay/walrelay/hlc"
)

// C67, restart from an old snapshot (theinterfold/interfold#1669): the wall clock is
// ahead by 2 s, 10 000 stamps go out, the process dies, the wall clock is set right.
// The first stamp after the start is greater than the greatest that is durable. Here
// the process dies with a transaction open; its connection is what ends with it.
func TestProcessGoesOnAboveTheGreatestDurableStamp(t *testing.T) {
	onEach(t, func(t *testing.T, h *house) {
		wall := time.Now()
		fast := func() time.Time { return wall.Add(2 * time.Second) }
		x := h.open(Options{}, fast)
		for range 20 {
			h.flush(x, some(500)...)
		}
		w := h.begin()
		lost, err := x.Flush(context.Background(), w.db, h.stage(x.Buffer(), some(1)...))
		if err != nil {
			t.Fatal(err)
		}
		w.rollback() // what the server does with the session of a dead process
		durable := h.ask(`select max(hlc)::text from outbox`)
		if again := h.ask(`select max(hlc)::text from hlc_checkpoint`); again != durable || packed(lost.Mark-1) != durable {
			t.Fatalf("checkpoint %s, greatest row %s, lost %s", again, durable, packed(lost.Mark))
		}

		x = h.open(Options{}, func() time.Time { return wall })
		res := h.flush(x, some(1)...)
		if packed(res.Mark-1) != durable {
			t.Errorf("the first stamp after the start is %s, the greatest durable one was %s", packed(res.Mark), durable)
		}
		if lead := x.Clock().Lead(); lead < 1900*time.Millisecond || lead > 2100*time.Millisecond {
			t.Errorf("the clock leads by %s, want about 2 s", lead)
		}
		// Without the checkpoint it would repeat itself.
		if s := h.open(Options{NoCheckpoint: true}, func() time.Time { return wall }).Clock().Now(); packed(s) >= durable {
			t.Errorf("stamp %s without a checkpoint: the test proves nothing", s)
		}
	})
}

// C65, a poisoned stamp from the future (yugabyte/yugabyte-db#10628 and others): what
// is refused leaves no trace in the rows or the checkpoint, also after a restart.
func TestPoisonedStampLeavesNoTraceOverARestart(t *testing.T) {
	onEach(t, func(t *testing.T, h *house) {
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
		mark, _, err := Checkpoint{}.Load(context.Background(), h.db())
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
	})
}
