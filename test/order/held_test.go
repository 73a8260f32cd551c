package order

import (
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/pgserver"
)

// Two transactions that are held open write in turns and commit the other way round:
//
//	first:   a 1  b 2             commits last
//	second:            a 3  c 4   commits first
func TestHeldTransactionsArriveInTheOrderThatTheirRouteAsksFor(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, v pgserver.Version) {
		for m, want := range map[mode]string{
			byCommit:  "a3 c4 a1 b2",
			byStamp:   "a1 b2 a3 c4",
			withinKey: "b2 a3 a1 c4", // a1 waits behind a3, which came first
		} {
			t.Run(string(m), func(t *testing.T) {
				t.Parallel()
				h, k := newHouse(t, pgserver.Shared(t, v), 1, m, patient)
				h.Init(t)
				r := h.Start(t)
				r.WaitReady(soon)
				stamps := clock(0)
				first, second := begin(t, h), begin(t, h)
				stage(t, first, "a", "a1", stamps.Now())
				stage(t, first, "b", "b2", stamps.Now())
				stage(t, second, "a", "a3", stamps.Now())
				stage(t, second, "c", "c4", stamps.Now())
				commit(t, second)
				received(t, r, 0, 2)
				commit(t, first)
				arrives(t, k, h, 4, want)
				stop(t, r)
			})
		}
	})
}

// The effect reads its cause in the database, and a database read merges no clock: the
// producer of the effect is 1 s behind, so that its stamp is smaller. The order of commits is
// right about that; that of stamps is not, and says so nowhere (the bound of the
// clocks holds); within a key the order of commits is kept.
func TestEffectOfASlowClockComesFirstOnlyWhereStampsDecide(t *testing.T) {
	t.Parallel()
	for m, want := range map[mode]string{
		byCommit:  "cause effect effect-elsewhere",
		byStamp:   "effect effect-elsewhere cause",
		withinKey: "effect-elsewhere cause effect",
	} {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			h, k := newHouse(t, pgserver.Shared(t, pgserver.V18), 1, m, "transaction: 10m, staged: 50ms, clock_error: 2s, every: 50ms, late_header: true")
			h.Init(t)
			r := h.Start(t)
			r.WaitReady(soon)
			right, slow := clock(0), clock(-time.Second)
			db := h.PG.Conn(t, h.Database)
			stage(t, db, "a", "cause", right.Now())
			stage(t, db, "a", "effect", slow.Now())
			stage(t, db, "b", "effect-elsewhere", slow.Now())
			arrives(t, k, h, 3, want)
			stop(t, r)
			if j := judge(t, k.Consume(t, h.Topic)); j.late != 0 {
				t.Errorf("%+v, want none late", j)
			}
		})
	}
}
