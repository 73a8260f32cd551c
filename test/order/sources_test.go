package order

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/walrelay/walrelay/hlc"
	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

// two is a relay for two databases and one topic; the second is reached on a way of its own.
type two struct {
	near, far *rig.House
	way       *way
	k         *kafkaserver.Server
	r         *rig.Relay
}

func newTwo(t *testing.T, partitions int, m mode, order string) two {
	t.Helper()
	pg := pgserver.Shared(t, pgserver.V18)
	var x two
	x.near, x.k = newHouse(t, pg, partitions, m, order)
	x.far = rig.NewHouse(t, pg, x.k.Brokers(), x.near.Topic)
	x.way = newWay(t, pg.Port())
	x.far.URL = x.way.through(t, pg.URL(x.far.Database))
	x.near.Second = x.far
	x.near.Init(t)
	x.r = x.near.Start(t)
	x.r.WaitReady(soon)
	return x
}

// Events go to and fro between two services, each the effect of the one before, under a few
// keys, and the log of one service is half a second behind.
func TestSourceThatLagsKeepsTheOrderOfEachKeyOnlyWhereStampsAreAskedFor(t *testing.T) {
	t.Parallel()
	for _, m := range []mode{byCommit, byStamp, withinKey} {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			x := newTwo(t, 3, m, patient)
			x.way.late.Store(int64(500 * time.Millisecond))
			near, far := x.near.PG.Conn(t, x.near.Database), x.far.PG.Conn(t, x.far.Database)
			nearClock, farClock := clock(0), clock(-20*time.Millisecond)
			const events, keys = 300, 7
			for n := range events {
				key, name := fmt.Sprint("key ", n%keys), fmt.Sprint(n)
				if n/keys%2 == 0 {
					stamp := nearClock.Now()
					stage(t, near, key, name, stamp)
					merge(t, farClock, stamp)
				} else {
					stamp := farClock.Now()
					stage(t, far, key, name, stamp)
					merge(t, nearClock, stamp)
				}
			}
			records := x.k.ConsumeN(t, events, soon, x.near.Topic)
			j := judge(t, records)
			switch {
			case len(records) != events || j.late != 0:
				t.Errorf("%d records of %d, %+v", len(records), events, j)
			case m == byCommit && j.inversionsOfKey == 0:
				t.Error("the naive interleaving is in order: the test tests nothing")
			case m != byCommit && j != (judgement{}):
				t.Errorf("%+v, want each partition in the order of stamps", j)
			}
			t.Logf("%+v", j)
			stop(t, x.r)
		})
	}
}

func merge(t *testing.T, c *hlc.Clock, stamp hlc.Stamp) {
	t.Helper()
	if _, err := c.Observe(stamp); err != nil {
		t.Fatal(err)
	}
}

func TestNothingGoesPastASourceThatSaysNothing(t *testing.T) {
	t.Parallel()
	x := newTwo(t, 1, byStamp, patient)
	near, far := x.near.PG.Conn(t, x.near.Database), x.far.PG.Conn(t, x.far.Database)
	stamps := clock(0)
	x.way.hold()
	stage(t, far, "a", "far1", stamps.Now())
	stage(t, near, "a", "near2", stamps.Now())
	stage(t, near, "b", "near3", stamps.Now())
	received(t, x.r, 0, 2)
	looked(t, x.near, 10)
	if got := names(x.k.Consume(t, x.near.Topic)); got != "" {
		t.Errorf("%s went past a source that says nothing", got)
	}
	x.way.pass()
	arrives(t, x.k, x.near, 3, "far1 near2 near3")
	stop(t, x.r)
}

func TestSourceThatSaysNothingIsLeftBehindAfterStallAfterAndItsEventsCountAsLate(t *testing.T) {
	t.Parallel()
	x := newTwo(t, 1, byStamp, strings.Replace(patient, "on_source_stall: block", "on_source_stall: detach, stall_after: 1s", 1))
	near, far := x.near.PG.Conn(t, x.near.Database), x.far.PG.Conn(t, x.far.Database)
	stamps := clock(0)
	x.way.hold()
	stage(t, far, "a", "far1", stamps.Now())
	stage(t, near, "a", "near2", stamps.Now())
	arrives(t, x.k, x.near, 1, "near2")
	x.way.pass()
	arrives(t, x.k, x.near, 2, "near2 far1")
	// It is waited for again.
	stage(t, near, "b", "near3", stamps.Now())
	stage(t, far, "b", "far4", stamps.Now())
	records := x.k.ConsumeN(t, 4, soon, x.near.Topic)
	if got := names(records); got != "near2 far1 near3 far4" {
		t.Errorf("arrived %s", got)
	}
	if j := judge(t, records); j != (judgement{late: 1}) {
		t.Errorf("%+v, want the one that was left behind to say that it is late", j)
	}
	stop(t, x.r)
}
