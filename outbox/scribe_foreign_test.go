package outbox

import (
	"testing"
	"time"
)

func TestSomebodyElseWhoPublishesTheSameRowsIsSaid(t *testing.T) {
	t.Parallel()
	var f foreign
	now := time.Unix(0, 0)
	tb := &markTable{}
	if _, changed := f.watch(tb, Marked{Pending: 5, Absent: 3}, now); changed {
		t.Fatal("rows of our own, or deleted by their writer, were taken for a foreign poller's")
	}
	for range 2 {
		if c, changed := f.watch(tb, Marked{Pending: 5, Foreign: 1, Settled: 1}, now); !changed || c.Remedy == "" {
			t.Fatalf("not said: %+v", c)
		}
	}
	if f.rows != 4 {
		t.Fatalf("%d rows counted, want 4", f.rows)
	}
	if c, changed := f.watch(tb, Marked{Pending: 1}, now.Add(6*time.Minute)); !changed || c.What != "" {
		t.Fatal("the warning stays although nobody was seen for minutes")
	}
}
