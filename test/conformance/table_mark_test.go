package conformance

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/walrelay/walrelay/outbox"
)

func TestMarkWritesPendingAndForeignRowsAndLeavesTheOthersAlone(t *testing.T) {
	everywhere(t, options{}, func(t *testing.T, y *yard) {
		y.put(1, 6, 10)
		y.change(fields{"status": "processing", "processing_at": moment(0), "attempts": 1, "last_error": "old"}, 2)
		y.change(fields{"status": "failed", "last_error": "why"}, 3)
		y.change(fields{"status": "published", "published_at": made(0)}, 4)
		marks := []outbox.Mark{
			{ID: y.id(6), Error: "$dead\x00 letter \xff"}, {ID: y.id(1)}, {ID: y.id(2)}, {ID: y.id(3)}, {ID: y.id(4)}, {ID: y.id(99)}, {ID: y.id(98)}, {ID: y.id(1)},
		}
		m := y.mark(marks...)
		if want := (outbox.Marked{Pending: 2, Foreign: 1, Settled: 3, Absent: 2}); fmt.Sprint(m) != fmt.Sprint(want) {
			t.Fatalf("marked %+v, want %+v", m, want)
		}
		y.wantRow(1, "published attempts=0 published_at")
		y.wantRow(2, "published attempts=1 published_at")
		y.wantRow(3, "failed attempts=0 error=why")
		y.wantRow(4, "published attempts=0 published_at")
		y.wantRow(5, "pending attempts=0")
		y.wantRow(6, "failed attempts=0 error=$dead\\0 letter \uFFFD")
		if at := y.read(t, 4)["published_at"].(time.Time); !at.Equal(made(0)) {
			t.Fatalf("a published row was published again, at %v", at)
		}
		m = y.mark(marks...)
		if want := (outbox.Marked{Settled: 6, Absent: 2}); fmt.Sprint(m) != fmt.Sprint(want) {
			t.Fatalf("marked again %+v, want %+v", m, want)
		}
	})
}

func TestMarkDeletesWhereThatIsTheWayAndKeepsWhatFailed(t *testing.T) {
	everywhere(t, options{after: "delete"}, func(t *testing.T, y *yard) {
		y.put(1, 3, 10)
		m := y.mark(outbox.Mark{ID: y.id(1)}, outbox.Mark{ID: y.id(2), Error: "no"}, outbox.Mark{ID: y.id(1)})
		if m.Pending != 2 || m.Settled != 1 {
			t.Fatalf("marked %+v", m)
		}
		y.wantRow(1, "absent")
		y.wantRow(2, "failed attempts=0 error=no")
		y.wantRow(3, "pending attempts=0")
		if m := y.mark(outbox.Mark{ID: y.id(1)}); m.Absent != 1 {
			t.Fatalf("marked again %+v", m)
		}
	})
}

func TestLookUpNamesWhatIsThereAndNotPending(t *testing.T) {
	everywhere(t, options{}, func(t *testing.T, y *yard) {
		y.put(1, 4, 10)
		for n, status := range []string{"", "pending", "processing", "published", "failed"} {
			if n > 0 {
				y.change(fields{"status": status}, n)
			}
		}
		done, err := y.LookUp(y.ctx(), y.ids(span(1, 9)...))
		if err != nil || len(done) != 3 || !done[y.id(2)] || !done[y.id(3)] || !done[y.id(4)] {
			t.Fatalf("%v, %v", done, err)
		}
	})
}

func TestMarksInAnyOrderMeetWithoutHarm(t *testing.T) {
	everywhere(t, options{}, func(t *testing.T, y *yard) {
		const rows = 400
		y.put(1, rows, 10)
		var wg sync.WaitGroup
		marked := make([]outbox.Marked, 4)
		for w := range marked {
			wg.Go(func() {
				marks := make([]outbox.Mark, rows)
				for i := range marks {
					n := i + 1
					if w%2 == 1 {
						n = rows - i
					}
					marks[i].ID = y.id(n)
				}
				for range 5 {
					m, err := y.Mark(y.ctx(), marks)
					if err != nil {
						t.Errorf("mark: %v", err)
						return
					}
					marked[w].Pending += m.Pending
				}
			})
		}
		wg.Wait()
		if n := marked[0].Pending + marked[1].Pending + marked[2].Pending + marked[3].Pending; n != rows {
			t.Fatalf("%d of %d rows were marked", n, rows)
		}
	})
}

func TestFiguresCountByStateAndKnowTheOldest(t *testing.T) {
	everywhere(t, options{}, func(t *testing.T, y *yard) {
		figures := func() outbox.Figures {
			t.Helper()
			f, err := y.Figures(y.ctx())
			if err != nil {
				t.Fatal(err)
			}
			f.DeadTuples = 0
			return f
		}
		if f := figures(); f != (outbox.Figures{}) {
			t.Fatalf("of an empty table: %+v", f)
		}
		y.put(1, 10, 3)
		y.change(fields{"created_at": moment(-time.Hour)}, span(1, 10)...)
		y.change(fields{"created_at": moment(-2 * time.Hour), "available_at": moment(time.Hour), "attempts": 2}, 3)
		y.change(fields{"status": "processing"}, 4, 5)
		y.change(fields{"status": "failed", "created_at": made(0)}, 6)
		y.change(fields{"status": "published", "created_at": made(0)}, 9, 10)
		f := figures()
		if f.Pending != 5 || f.Retrying != 1 || f.Processing != 2 || f.Failed != 1 || f.OldestPending < 2*time.Hour || f.OldestPending > 3*time.Hour {
			t.Fatalf("%+v", f)
		}
		y.change(fields{"status": "published"}, span(1, 10)...)
		if f := figures(); f != (outbox.Figures{}) {
			t.Fatalf("all published: %+v", f)
		}
	})
}

func TestRetainDeletesOnlyOldPublishedRows(t *testing.T) {
	everywhere(t, options{}, func(t *testing.T, y *yard) {
		y.put(1, 20, 5)
		y.change(fields{"status": "published", "published_at": moment(-48 * time.Hour)}, span(1, 10)...)
		y.change(fields{"available_at": moment(0)}, 2, 3)
		y.change(fields{"status": "published", "published_at": moment(0)}, 11)
		y.change(fields{"status": "failed", "published_at": moment(-48 * time.Hour)}, 12)
		retain := func(keep time.Duration, want int64) {
			t.Helper()
			if r, err := y.Retain(y.ctx(), keep, 4); err != nil || r.Rows != want {
				t.Fatalf("deleted %d, want %d: %v", r.Rows, want, err)
			}
		}
		retain(0, 0)
		for _, want := range []int64{4, 4, 2, 0} {
			retain(24*time.Hour, want)
		}
		if left := y.rows(t); !slices.Equal(left, span(11, 20)) {
			t.Fatalf("left %v", left)
		}
	})
}
