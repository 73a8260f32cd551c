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

func TestStaleClaimsAreGivenBackOnceAndTheirOldOutcomesAreLost(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t), event.Forze, nil)
	h.insert(1, 6, 6)
	c := h.claim(outbox.Request{Limit: 6})
	h.set(bson.D{is("processing_at", time.Now().Add(-time.Hour))}, 1, 2, 3)
	h.set(bson.D{is("processing_at", nil)}, 6)
	reclaim := func(r outbox.Reclaim, want int) {
		t.Helper()
		if n, err := h.Reclaim(h.ctx(), r); err != nil || n != want {
			t.Fatalf("reclaimed %d, want %d: %v", n, want, err)
		}
	}
	reclaim(outbox.Reclaim{OlderThan: time.Minute, Except: []string{id(3)}, Limit: 1}, 1)
	reclaim(outbox.Reclaim{OlderThan: time.Minute, Except: []string{id(3)}, Limit: 10}, 1)
	reclaim(outbox.Reclaim{OlderThan: time.Minute, Except: []string{id(3)}}, 0)
	h.wantRow(1, "pending attempts=1 due")
	h.wantRow(2, "pending attempts=1 due")
	h.wantRow(3, "processing attempts=0 processing_at")
	h.wantRow(6, "processing attempts=0")
	// By tenure: only what was claimed within it, and only its shard.
	s, other := h.shard(4, 2), h.shard(5, 2)
	moment := momentText(h.doc(4).Lookup("processing_at").Time())
	tenure := outbox.Tenure{Shard: s, From: moment, Until: momentText(time.Now().Add(time.Minute))}
	want := 1
	if other == s {
		want++
	}
	reclaim(outbox.Reclaim{Shards: outbox.Shards{Of: 2, Own: []int{1 - s}}, Tenures: []outbox.Tenure{tenure}}, 0)
	early := outbox.Tenure{Shard: s, From: momentText(began), Until: momentText(began.Add(time.Second))}
	reclaim(outbox.Reclaim{Shards: outbox.Shards{Of: 2, Own: []int{s}}, Tenures: []outbox.Tenure{early}}, 0)
	reclaim(outbox.Reclaim{Shards: outbox.Shards{Of: 2, Own: []int{s}}, Tenures: []outbox.Tenure{tenure}}, want)
	h.wantRow(4, "pending attempts=1 due")
	if lost := h.settle(outbox.Outcome{ID: id(1), Fence: c.Fence}, outbox.Outcome{ID: id(4), Fence: c.Fence, Verdict: outbox.Released}); len(lost) != 2 {
		t.Fatalf("a reclaimed row took its old outcome: lost %v", lost)
	}
	again := h.claim(outbox.Request{Limit: 2})
	same(t, "claimed again", rowIDs(again), []string{id(1), id(2)})
	if lost := h.settle(outbox.Outcome{ID: id(1), Fence: c.Fence}, outbox.Outcome{ID: id(2), Fence: again.Fence}); !slices.Equal(lost, []int{0}) {
		t.Fatalf("a row that somebody else has claimed took its old outcome: lost %v", lost)
	}
}

// shard asks the server for the shard of a row.
func (h *house) shard(n, of int) int {
	h.t.Helper()
	for s := range of {
		d := append(bson.D{is(fieldID, oid(n))}, h.l.inShards(outbox.Shards{Of: of, Own: []int{s}})...)
		if n, err := h.c.CountDocuments(h.ctx(), d); err != nil || n == 1 {
			return s
		}
	}
	h.t.Fatalf("row %d is in no shard", n)
	return -1
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

// A claim whose answer was lost is found by the fence of the one before it.
func TestAClaimIsFoundByWhenItWasMade(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t), event.Forze, nil)
	h.insert(1, 30, 10)
	all := outbox.Shards{Of: 2, Own: []int{0, 1}}
	first := h.claim(outbox.Request{Limit: 10, Shards: all})
	h.settle(outbox.Outcome{ID: first.Rows[0].ID, Fence: first.Fence, Verdict: outbox.Published})
	lost := h.claim(outbox.Request{Limit: 10, Shards: all})
	r := outbox.Reclaim{Shards: all, Limit: 100, Except: rowIDs(first)}
	for _, shard := range all.Own {
		r.Tenures = append(r.Tenures, outbox.Tenure{Shard: shard, From: string(first.Fence), Until: "infinity"})
	}
	n, err := h.Reclaim(h.ctx(), r)
	if err != nil || n != len(lost.Rows) {
		t.Fatalf("reclaimed %d of %d rows: %v", n, len(lost.Rows), err)
	}
	h.wantRow(11, "pending attempts=1 due")
	h.wantRow(2, "processing attempts=0 processing_at")
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

func TestUnfinishedRowsAreThoseTriedAndThoseInHand(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t), event.Forze, nil)
	h.insert(1, 8, 4)
	later := time.Now().Add(time.Hour)
	h.set(bson.D{is("status", processing), is("processing_at", began)}, 2, 6)
	h.set(bson.D{is("attempts", 1), is("available_at", later)}, 3)
	h.set(bson.D{is("attempts", 1), is("available_at", began)}, 5)
	h.set(bson.D{is("available_at", later)}, 7)
	h.set(bson.D{is("status", failed), is("attempts", 4)}, 8)
	rows, more, err := h.Unfinished(h.ctx(), outbox.Shards{}, 4)
	if err != nil || more {
		t.Fatal(more, err)
	}
	want := []outbox.Unfinished{
		{ID: id(2), Key: "k2", Route: "route2", Processing: true, Due: true},
		{ID: id(3), Key: "k3", Route: "route0"},
		{ID: id(5), Key: "k1", Route: "route2", Due: true},
		{ID: id(6), Key: "k2", Route: "route0", Processing: true, Due: true},
	}
	if !slices.Equal(rows, want) {
		t.Fatalf("got %+v", rows)
	}
	if rows, more, _ = h.Unfinished(h.ctx(), outbox.Shards{}, 3); len(rows) != 3 || !more {
		t.Fatalf("%d rows, more %v", len(rows), more)
	}
	n := 0
	for s := range 3 {
		rows, _, err = h.Unfinished(h.ctx(), outbox.Shards{Of: 3, Own: []int{s}}, 10)
		if n += len(rows); err != nil {
			t.Fatal(err)
		}
	}
	if n != len(want) {
		t.Fatalf("the shards have %d unfinished rows", n)
	}
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

func TestRetainDeletesOnlyOldPublishedRows(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t), event.Forze, nil)
	h.insert(1, 20, 5)
	old := bson.D{is("status", published), is("published_at", time.Now().Add(-48*time.Hour))}
	h.set(old, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	h.set(bson.D{is("status", published), is("published_at", time.Now())}, 11)
	h.set(append(old[1:2:2], is("status", failed)), 12)
	retain := func(keep time.Duration, want int64) {
		t.Helper()
		if r, err := h.Retain(h.ctx(), keep, 4); err != nil || r.Rows != want {
			t.Fatalf("deleted %d, want %d: %v", r.Rows, want, err)
		}
	}
	retain(0, 0)
	for _, want := range []int64{4, 4, 2, 0} {
		retain(24*time.Hour, want)
	}
	if n, err := h.c.CountDocuments(h.ctx(), bson.D{is(fieldID, op("$gt", oid(10)))}); n != 10 || err != nil {
		t.Fatalf("%d rows are left: %v", n, err)
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
