package conformance

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/walrelay/walrelay/outbox"
)

func TestSettleWritesEachTransition(t *testing.T) {
	everywhere(t, options{}, func(t *testing.T, y *yard) {
		y.put(1, 8, 10)
		y.change(fields{"last_error": "old", "attempts": 1, "available_at": moment(-time.Hour)}, span(1, 6)...)
		other := y.claim(outbox.Request{Limit: 1, Only: y.ids(8)})
		c := y.claim(outbox.Request{Limit: 6})
		f := c.Fence
		if f == other.Fence {
			t.Fatalf("two claims have the fence %s", f)
		}
		lost := y.settle(
			outbox.Outcome{ID: y.id(4), Fence: f, Verdict: outbox.Released},
			outbox.Outcome{ID: y.id(1), Fence: f, Verdict: outbox.Published},
			outbox.Outcome{ID: y.id(2), Fence: f, Verdict: outbox.Retry, Attempts: 2, Delay: time.Hour, Error: `it's "no" \ good $x`},
			outbox.Outcome{ID: y.id(3), Fence: f, Verdict: outbox.Failed, Error: "gone"},
			outbox.Outcome{ID: y.id(5), Fence: other.Fence, Verdict: outbox.Published},
			outbox.Outcome{ID: y.id(99), Fence: f, Verdict: outbox.Published},
			outbox.Outcome{ID: y.id(8), Fence: other.Fence, Verdict: outbox.Published},
		)
		if !slices.Equal(lost, []int{4, 5}) {
			t.Fatalf("lost %v", lost)
		}
		y.wantRow(1, "published attempts=1 published_at due")
		y.wantRow(2, `pending attempts=2 later error=it's "no" \ good $x`)
		y.wantRow(3, "failed attempts=1 due error=gone")
		y.wantRow(4, "pending attempts=1 due error=old")
		y.wantRow(5, "processing attempts=1 processing_at due error=old")
		y.wantRow(8, "published attempts=0 published_at")
		if in := y.read(t, 2)["available_at"].(time.Time).Sub(y.now(t)); in < 59*time.Minute || in > time.Hour {
			t.Fatalf("the retry is due in %v", in)
		}
		// Said again, because the first answer got lost: what was written is not lost.
		if lost := y.settle(outbox.Outcome{ID: y.id(1), Fence: f, Verdict: outbox.Published}, outbox.Outcome{ID: y.id(3), Fence: f, Verdict: outbox.Failed, Error: "gone"}); len(lost) != 0 {
			t.Fatalf("lost %v on repetition", lost)
		}
		if lost := y.settle(outbox.Outcome{ID: y.id(3), Fence: f, Verdict: outbox.Published}); len(lost) != 1 {
			t.Fatalf("a failed row was published by its old claim")
		}
	})
}

func TestPublishedRowsAreDeletedWhereThatIsTheWay(t *testing.T) {
	for name, o := range map[string]options{"row": {after: "delete"}, "lease": {after: "delete", lease: true}} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, o, func(t *testing.T, y *yard) {
				y.put(1, 5, 5)
				c := y.claim(outbox.Request{Limit: 4})
				y.change(fields{"status": "failed"}, 3)
				of := func(n int, v outbox.Verdict) outbox.Outcome {
					return outbox.Outcome{ID: y.id(n), Fence: c.Fence, Verdict: v, Error: "no"}
				}
				if lost := y.settle(of(1, outbox.Published), of(3, outbox.Published), of(4, outbox.Published), of(2, outbox.Failed)); !slices.Equal(lost, []int{1}) {
					t.Fatalf("lost %v, want the second", lost)
				}
				if left := y.rows(t); !slices.Equal(left, []int{2, 3, 5}) {
					t.Fatalf("left are %v", left)
				}
				y.wantRow(2, "failed attempts=0 error=no")
			})
		})
	}
}

func TestARowToBeTriedAgainIsClaimedOnceItIsDue(t *testing.T) {
	everywhere(t, options{}, func(t *testing.T, y *yard) {
		y.put(1, 2, 2)
		c := y.claim(outbox.Request{Limit: 2})
		y.settle(outbox.Outcome{ID: y.id(1), Fence: c.Fence, Verdict: outbox.Retry, Attempts: 1, Delay: time.Hour, Error: "x"},
			outbox.Outcome{ID: y.id(2), Fence: c.Fence, Verdict: outbox.Retry, Attempts: 1, Error: "x"})
		again := y.claim(outbox.Request{Limit: 2})
		y.took("claim", again, 2)
		if again.Rows[0].Attempts != 1 {
			t.Fatalf("%d attempts", again.Rows[0].Attempts)
		}
	})
}

// The fence of before need not be void: it is the same claim.
func TestRenewSaysWhatIsStillHeldAndPutsOffItsReclaim(t *testing.T) {
	everywhere(t, options{}, func(t *testing.T, y *yard) {
		y.put(1, 4, 4)
		c := y.claim(outbox.Request{Limit: 3})
		other := y.claim(outbox.Request{Limit: 1})
		y.change(fields{"status": "pending", "processing_at": nil}, 2)
		fence, held, err := y.Renew(y.ctx(), c.Fence, append(y.ids(1, 2, 3, 4, 99), y.id(1)))
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(held)
		y.same("held", slices.Compact(held), 1, 3)
		if fence == c.Fence {
			t.Fatalf("the fence is still %s", fence)
		}
		// Reclaimed by age: only the claim that was not renewed is older than the fence.
		shards := outbox.Shards{Of: 1, Own: []int{0}}
		n, err := y.Reclaim(y.ctx(), outbox.Reclaim{Shards: shards, Tenures: []outbox.Tenure{{From: string(c.Fence), Until: string(other.Fence)}}, Limit: 9})
		if err != nil || n != 1 {
			t.Fatalf("reclaimed %d: %v", n, err)
		}
		if lost := y.settle(outbox.Outcome{ID: y.id(3), Fence: fence}, outbox.Outcome{ID: y.id(4), Fence: other.Fence}); !slices.Equal(lost, []int{1}) {
			t.Fatalf("lost %v", lost)
		}
		y.wantRow(1, "processing attempts=0 processing_at")
		y.wantRow(3, "published attempts=0 published_at")
		y.wantRow(4, "pending attempts=1 due")
	})
}

func TestStaleClaimsAreGivenBackOnceAndTheirOldOutcomesAreLost(t *testing.T) {
	everywhere(t, options{}, func(t *testing.T, y *yard) {
		y.put(1, 6, 6)
		shards := y.shards(2)
		c := y.claim(outbox.Request{Limit: 6})
		y.change(fields{"processing_at": moment(-time.Hour)}, 1, 2, 3)
		y.change(fields{"processing_at": nil}, 6)
		reclaim := func(r outbox.Reclaim, want int) {
			t.Helper()
			if n, err := y.Reclaim(y.ctx(), r); err != nil || n != want {
				t.Fatalf("reclaimed %d, want %d: %v", n, want, err)
			}
		}
		reclaim(outbox.Reclaim{OlderThan: time.Minute, Except: y.ids(3), Limit: 1}, 1)
		reclaim(outbox.Reclaim{OlderThan: time.Minute, Except: y.ids(3), Limit: 10}, 1)
		reclaim(outbox.Reclaim{OlderThan: time.Minute, Except: y.ids(3)}, 0)
		y.wantRow(1, "pending attempts=1 due")
		y.wantRow(2, "pending attempts=1 due")
		y.wantRow(3, "processing attempts=0 processing_at")
		y.wantRow(6, "processing attempts=0")
		// By tenure: only what was claimed within it, and only its shard.
		s := shards[y.id(4)]
		tenure := outbox.Tenure{Shard: s, From: string(c.Fence), Until: "infinity"}
		want := 1
		if shards[y.id(5)] == s {
			want++
		}
		reclaim(outbox.Reclaim{Shards: outbox.Shards{Of: 2, Own: []int{1 - s}}, Tenures: []outbox.Tenure{tenure}}, 0)
		reclaim(outbox.Reclaim{Shards: outbox.Shards{Of: 2, Own: []int{s}}, Tenures: []outbox.Tenure{tenure}}, want)
		y.wantRow(4, "pending attempts=1 due")
		if lost := y.settle(outbox.Outcome{ID: y.id(1), Fence: c.Fence}, outbox.Outcome{ID: y.id(4), Fence: c.Fence}); len(lost) != 2 {
			t.Fatalf("a reclaimed row took its old outcome: lost %v", lost)
		}
		again := y.claim(outbox.Request{Limit: 2})
		y.took("claimed again", again, 1, 2)
		if lost := y.settle(outbox.Outcome{ID: y.id(1), Fence: c.Fence}, outbox.Outcome{ID: y.id(2), Fence: again.Fence}); !slices.Equal(lost, []int{0}) {
			t.Fatalf("a row that somebody else has claimed took its old outcome: lost %v", lost)
		}
	})
}

// A claim whose answer was lost is found by the fence of the one before it.
func TestAClaimIsFoundByWhenItWasMade(t *testing.T) {
	everywhere(t, options{}, func(t *testing.T, y *yard) {
		y.put(1, 30, 10)
		all := outbox.Shards{Of: 2, Own: []int{0, 1}}
		first := y.claim(outbox.Request{Limit: 10, Shards: all})
		y.settle(outbox.Outcome{ID: first.Rows[0].ID, Fence: first.Fence, Verdict: outbox.Published})
		lost := y.claim(outbox.Request{Limit: 10, Shards: all})
		r := outbox.Reclaim{Shards: all, Limit: 100, Except: rowIDs(first)}
		for _, shard := range all.Own {
			r.Tenures = append(r.Tenures, outbox.Tenure{Shard: shard, From: string(first.Fence), Until: "infinity"})
		}
		n, err := y.Reclaim(y.ctx(), r)
		if err != nil || n != len(lost.Rows) {
			t.Fatalf("reclaimed %d of %d rows: %v", n, len(lost.Rows), err)
		}
		y.wantRow(11, "pending attempts=1 due")
		y.wantRow(2, "processing attempts=0 processing_at")
	})
}

func TestRequeueClearsWhatFailedRowsHad(t *testing.T) {
	everywhere(t, options{}, func(t *testing.T, y *yard) {
		y.put(1, 3, 3)
		had := fields{"status": "failed", "attempts": 3, "last_error": "x", "available_at": moment(0), "processing_at": moment(0), "published_at": moment(0)}
		y.change(had, 1, 2)
		if n, err := y.Requeue(y.ctx(), y.ids(1, 3, 9, 1)); err != nil || n != 1 {
			t.Fatalf("requeued %d: %v", n, err)
		}
		y.wantRow(1, "pending attempts=0")
		y.wantRow(2, "failed attempts=3 published_at due error=x")
		y.took("claim", y.claim(outbox.Request{Limit: 9}), 1, 3)
	})
}

func TestUnfinishedRowsAreThoseTriedAndThoseInHand(t *testing.T) {
	everywhere(t, options{}, func(t *testing.T, y *yard) {
		y.put(1, 8, 4)
		y.change(fields{"status": "processing", "processing_at": moment(0)}, 2, 6)
		y.change(fields{"attempts": 1, "available_at": moment(time.Hour)}, 3)
		y.change(fields{"attempts": 1, "available_at": moment(0)}, 5)
		y.change(fields{"available_at": moment(time.Hour)}, 7)
		y.change(fields{"status": "failed", "attempts": 4}, 8)
		rows, more, err := y.Unfinished(y.ctx(), outbox.Shards{}, 4)
		if err != nil || more {
			t.Fatal(more, err)
		}
		want := []outbox.Unfinished{
			{ID: y.id(2), Key: "k2", Route: "route2", Processing: true, Due: true},
			{ID: y.id(3), Key: "k3", Route: "route0"},
			{ID: y.id(5), Key: "k1", Route: "route2", Due: true},
			{ID: y.id(6), Key: "k2", Route: "route0", Processing: true, Due: true},
		}
		if !slices.Equal(rows, want) {
			t.Fatalf("got %+v", rows)
		}
		if rows, more, _ = y.Unfinished(y.ctx(), outbox.Shards{}, 3); len(rows) != 3 || !more {
			t.Fatalf("%d rows, more %v", len(rows), more)
		}
		found := 0
		for s := range 3 {
			rows, _, err := y.Unfinished(y.ctx(), outbox.Shards{Of: 3, Own: []int{s}}, 10)
			if found += len(rows); err != nil {
				t.Fatal(err)
			}
		}
		if found != len(want) {
			t.Fatalf("the shards have %d unfinished rows", found)
		}
		if rows, more, err = y.Unfinished(y.ctx(), outbox.Shards{Of: 4}, 3); len(rows) != 0 || more || err != nil {
			t.Fatalf("%d rows without a shard, more %v: %v", len(rows), more, err)
		}
	})
}

func TestPublishedRowsAreReadAgainOldestFirst(t *testing.T) {
	everywhere(t, options{}, func(t *testing.T, y *yard) {
		y.put(1, 9, 3)
		for n := 3; n <= 9; n++ {
			y.change(fields{"status": "published", "published_at": time.Date(2026, 2, 11-n, 0, 0, 0, 0, time.UTC)}, n)
		}
		read := func(f outbox.Filter, want ...int) {
			t.Helper()
			c, err := y.Read(y.ctx(), f)
			if err != nil {
				t.Fatal(err)
			}
			y.took(fmt.Sprintf("%+v", f), c, want...)
		}
		read(outbox.Filter{Limit: 3}, 9, 8, 7)
		read(outbox.Filter{Limit: 3, After: y.id(7)}, 6, 5, 4)
		read(outbox.Filter{Route: "route0"}, 9, 6, 3)
		read(outbox.Filter{Since: "2026-02-04T00:00:00Z", Until: "2026-02-06T00:00:00Z"}, 7, 6)
		read(outbox.Filter{EventID: eventID(4)}, 4)
		y.wantRow(4, "published attempts=0 published_at")
	})
}
