package order

import (
	"strings"
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/pgserver"
)

// A stamp that is missing, or further ahead of its commit than order.max_drift, says nothing of
// the order: such events take the place of their commit, and nobody waits for their time.
func TestEventsWithoutAUsableStampTakeThePlaceOfTheirCommit(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, v pgserver.Version) {
		h, k := newHouse(t, pgserver.Shared(t, v), 1, byStamp, patient)
		h.Init(t)
		r := h.Start(t)
		r.WaitReady(soon)
		stamps := clock(0)
		db := h.PG.Conn(t, h.Database)
		first := begin(t, h)
		stage(t, first, "a", "first", stamps.Now())
		stage(t, db, "a", "stamped", stamps.Now())
		stage(t, db, "a", "future", clock(time.Hour).Now())
		stage(t, db, "a", "null", 0)
		stage(t, db, "a", "last", stamps.Now())
		received(t, r, 0, 4)
		looked(t, h, 5)
		commit(t, first)
		arrives(t, k, h, 5, "first stamped future null last")
		stop(t, r)
	})
}

func TestLateEventIsPublishedAtOnceAndSaysSo(t *testing.T) {
	t.Parallel()
	h, k := newHouse(t, pgserver.Shared(t, pgserver.V18), 1, byStamp, patient)
	h.Init(t)
	r := h.Start(t)
	r.WaitReady(soon)
	db := h.PG.Conn(t, h.Database)
	stage(t, db, "a", "on-time", clock(0).Now())
	k.ConsumeN(t, 1, soon, h.Topic)
	stage(t, db, "a", "late", clock(-time.Minute).Now())
	arrives(t, k, h, 2, "on-time late")
	for _, rec := range k.Consume(t, h.Topic) {
		if got, want := header(rec, "walrelay_late") == "1", strings.Contains(string(rec.Value), "late"); got != want {
			t.Errorf("%s says that it is late: %t", rec.Value, got)
		}
	}
	stop(t, r)
}

func TestLateEventStopsItsSourceWhereThatIsAskedForAndTheReasonNamesTheCure(t *testing.T) {
	t.Parallel()
	h, k := newHouse(t, pgserver.Shared(t, pgserver.V18), 1, byStamp, patient+", late: halt")
	h.Init(t)
	r := h.Start(t)
	r.WaitReady(soon)
	db := h.PG.Conn(t, h.Database)
	stage(t, db, "a", "on-time", clock(0).Now())
	k.ConsumeN(t, 1, soon, h.Topic)
	stage(t, db, "a", "late", clock(-time.Minute).Now())
	stage(t, db, "a", "behind", clock(0).Now())
	reason := r.WaitNotReady(soon, "order.late: emit")
	for _, word := range []string{"order.transaction", "order.clock_error", "late-events"} {
		if !strings.Contains(reason, word) {
			t.Errorf("the reason does not name %s: %s", word, reason)
		}
	}
	if got := names(k.Consume(t, h.Topic)); got != "on-time" {
		t.Errorf("arrived %s, want nothing beyond the late event", got)
	}
	r.Stop() // what it halted at is not acknowledged, and the exit code says so
	h.Top = "order: {" + patient + ", late: emit}"
	r = h.Start(t)
	arrives(t, k, h, 3, "on-time late behind")
	stop(t, r)
}
