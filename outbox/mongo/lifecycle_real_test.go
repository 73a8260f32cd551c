package mongo

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/mongoserver"
)

func TestRenewMovesTheFenceOfWhatIsStillHeld(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t), event.Forze, nil)
	h.insert(1, 4, 3)
	c := h.claim(outbox.Request{Limit: 3})
	h.set(bson.D{is("processing_at", time.Now().Add(-time.Hour))})
	h.set(bson.D{is("status", pending), is("processing_at", nil)}, 2)
	old := outbox.Fence("2026-01-01T00:00:00.000Z " + tokenOf(c.Fence))
	fence, held, err := h.Renew(h.ctx(), old, append(ids(1, 4), id(1)))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(held)
	same(t, "held", held, []string{id(1), id(3)})
	if fence <= old {
		t.Fatalf("fence %s after %s", fence, old)
	}
	if n, err := h.Reclaim(h.ctx(), outbox.Reclaim{OlderThan: time.Minute}); n != 0 || err != nil {
		t.Fatalf("reclaimed %d of what was renewed: %v", n, err)
	}
	// The answer to a renewal may be lost: the old fence serves as well.
	if lost := h.settle(outbox.Outcome{ID: id(1), Fence: old}, outbox.Outcome{ID: id(2), Fence: fence}, outbox.Outcome{ID: id(3), Fence: fence}); !slices.Equal(lost, []int{1}) {
		t.Fatalf("lost %v", lost)
	}
	h.wantRow(1, "published attempts=0 published_at processing_at")
	h.wantRow(3, "published attempts=0 published_at processing_at")
}

// A row with whatever somebody wrote for attempts, or without, is given back like another.
func TestARowIsGivenBackWhateverItsAttemptsAre(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t), event.Forze, nil)
	h.insert(1, 4, 4)
	h.set(bson.D{is("status", processing), is("processing_at", began)})
	h.set(bson.D{is("attempts", "many")}, 1)
	h.set(bson.D{is("attempts", nil)}, 2)
	h.set(bson.D{is("attempts", 3.0)}, 3)
	h.set(bson.D{is("attempts", int64(1)<<40)}, 4)
	if n, err := h.Reclaim(h.ctx(), outbox.Reclaim{OlderThan: time.Minute}); n != 4 || err != nil {
		t.Fatal(n, err)
	}
	for n, want := range map[int]int{1: 1, 2: 1, 3: 4, 4: 1} {
		h.wantRow(n, fmt.Sprintf("pending attempts=%d due", want))
	}
}

func TestRequeueClearsWhatFailedRowsHad(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t), event.Forze, nil)
	h.insert(1, 3, 3)
	h.set(bson.D{
		is("status", failed), is("attempts", 3), is("last_error", "x"), is("available_at", began), is("processing_at", began), is("published_at", began), is("claim_token", "t"),
	}, 1, 2)
	if n, err := h.Requeue(h.ctx(), []string{id(1), id(3), id(9), id(1), "x"}); err != nil || n != 1 {
		t.Fatalf("requeued %d: %v", n, err)
	}
	h.wantRow(1, "pending attempts=0")
	if _, err := h.doc(1).LookupErr("claim_token"); err == nil {
		t.Fatal("the token of the old claim is still there")
	}
	h.wantRow(2, "failed attempts=3 published_at processing_at due error=x")
}

func TestPublishedRowsAreReadAgainOldestFirst(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t), event.Forze, nil)
	h.insert(1, 9, 3)
	for n := 3; n <= 9; n++ {
		h.set(bson.D{is("status", published), is("published_at", time.Date(2026, 2, 11-n, 0, 0, 0, 0, time.UTC))}, n)
	}
	h.set(bson.D{is("published_at", time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC))}, 10-1, 8) // two at one time
	read := func(f outbox.Filter, want ...int) {
		t.Helper()
		c, err := h.Read(h.ctx(), f)
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, n := range want {
			list = append(list, id(n))
		}
		same(t, fmt.Sprintf("%+v", f), rowIDs(c), list)
	}
	read(outbox.Filter{Limit: 3}, 8, 9, 7)
	read(outbox.Filter{Limit: 2, After: id(8)}, 9, 7)
	read(outbox.Filter{Limit: 3, After: id(7)}, 6, 5, 4)
	read(outbox.Filter{Limit: 3, After: id(77)})
	read(outbox.Filter{Route: "route0"}, 9, 6, 3)
	read(outbox.Filter{Since: "2026-02-04 00:00+00", Until: "2026-02-06"}, 7, 6)
	read(outbox.Filter{EventID: "00000000-0000-0000-0001-000000000004"}, 4)
	h.wantRow(4, "published attempts=0 published_at")
	if _, err := h.Read(h.ctx(), outbox.Filter{Since: "yesterday"}); event.ClassOf(err) != event.Halt {
		t.Fatal(err)
	}
}

func TestFiguresCountByStateAndKnowTheOldest(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t), event.Forze, nil)
	figures := func() outbox.Figures {
		t.Helper()
		f, err := h.Figures(h.ctx())
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	if f := figures(); f != (outbox.Figures{}) {
		t.Fatalf("of an empty table: %+v", f)
	}
	h.insert(1, 10, 3)
	ago := func(d time.Duration) time.Time { return time.Now().Add(-d) }
	h.set(bson.D{is("created_at", ago(time.Hour))})
	h.set(bson.D{is("created_at", ago(2*time.Hour)), is("available_at", ago(-time.Hour)), is("attempts", 2)}, 3)
	h.set(bson.D{is("created_at", "no date")}, 2)
	h.set(bson.D{is("status", processing)}, 4, 5)
	h.set(bson.D{is("status", failed), is("created_at", ago(50*time.Hour))}, 6)
	h.set(bson.D{is("status", published), is("created_at", ago(50*time.Hour))}, 9, 10)
	f := figures()
	if f.Pending != 5 || f.Retrying != 1 || f.Processing != 2 || f.Failed != 1 || f.OldestPending < 2*time.Hour || f.OldestPending > 3*time.Hour {
		t.Fatalf("%+v", f)
	}
	h.set(bson.D{is("status", published)})
	if f := figures(); f.Pending+f.Retrying+f.Processing+f.Failed != 0 || f.OldestPending != 0 {
		t.Fatalf("all published: %+v", f)
	}
}

func TestBacklogIsWhatWasThereAndNothingLater(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t), event.Forze, nil)
	h.insert(1, 10, 5)
	h.set(bson.D{is("status", processing)}, 1)
	h.set(bson.D{is("available_at", time.Now().Add(time.Hour))}, 2)
	h.set(bson.D{is("status", published)}, 3)
	h.set(bson.D{is("status", failed)}, 4)
	b, err := h.Backlog(h.ctx(), []string{"route1"})
	if err != nil {
		t.Fatal(err)
	}
	left := func(want int, held ...string) {
		t.Helper()
		if got, err := b.Left(h.ctx(), held); err != nil || got != want {
			t.Fatalf("%d rows are left, want %d: %v", got, want, err)
		}
	}
	left(8)
	h.insert(11, 20, 5)
	left(8)
	h.mark(outbox.Mark{ID: id(1)}, outbox.Mark{ID: id(2)})
	left(6)
	left(5, "k0") // row 5 waits behind a parked event; row 10 is on another route
	h.mark(outbox.Mark{ID: id(6)}, outbox.Mark{ID: id(7)}, outbox.Mark{ID: id(8)}, outbox.Mark{ID: id(9)}, outbox.Mark{ID: id(10)})
	left(0, "k0")
}
