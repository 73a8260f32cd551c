package ops_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/ops"
)

// tabled is a source that has seen something of everything in its table.
func tabled(o *ops.Ops) *ops.Source {
	s := o.Source("orders", streaming())
	s.Gear("poll", "slot walrelay_shop_orders is gone <b>")
	s.Claimed(500, 3*time.Millisecond)
	s.Claimed(0, time.Millisecond)
	s.ClaimsLost(1)
	s.Retried(2)
	s.GivenUp(3)
	s.Reclaimed(4)
	s.Marked(5, 6, 7, 8, 20*time.Millisecond)
	s.Skipped(9)
	s.HeldKeys(10)
	s.Parked(11, 12, 13)
	s.Shards(14, 16, 2)
	s.ShardsLost(15)
	s.Backlog("public.a", ops.Backlog{OldestPending: 90 * time.Second, Pending: 100_000, Retrying: 17, Processing: 18, Failed: 19, Limit: 100_000, DeadTuples: 20})
	s.Backlog("public.b", ops.Backlog{OldestPending: 30 * time.Second, Pending: 1, Limit: 100_000})
	s.Retained(21, 22)
	return s
}

func TestTheTablesFiguresReachMetricsStatusAndPage(t *testing.T) {
	t.Parallel()
	o := ops.New(ops.Options{Name: "shop"})
	tabled(o)
	families, _ := scrape(t, o)
	for _, c := range []struct {
		name  string
		label string
		want  float64
	}{
		{"source_gear", "poll", 1},
		{"source_gear", "log", 0},
		{"outbox_lag_seconds", "orders", 90},
		{"lag_seconds", "orders", 90},
		{"outbox_rows", "pending", 100_001},
		{"outbox_rows", "retrying", 17},
		{"outbox_rows", "processing", 18},
		{"outbox_rows", "failed", 19},
		{"outbox_dead_tuples", "orders", 20},
		{"rows_claimed_total", "orders", 500},
		{"claims_lost_total", "orders", 1},
		{"row_retries_total", "orders", 2},
		{"rows_given_up_total", "orders", 3},
		{"rows_reclaimed_total", "orders", 4},
		{"marks_total", "pending", 5},
		{"marks_total", "foreign", 6},
		{"marks_total", "settled", 7},
		{"marks_total", "absent", 8},
		{"events_skipped_total", "orders", 9},
		{"held_keys", "orders", 10},
		{"parked_events", "parked", 11},
		{"parked_events", "behind", 12},
		{"parked_events", "retrying", 13},
		{"shards_held", "orders", 14},
		{"members", "orders", 2},
		{"shards_lost_total", "orders", 15},
		{"retained_rows_total", "orders", 21},
		{"retained_partitions_total", "orders", 22},
		{"source_warnings", "orders", 0},
	} {
		if got, ok := value(t, families, "walrelay_"+c.name, c.label); !ok || got != c.want {
			t.Errorf("%s{%s} is %v (there: %v), want %v", c.name, c.label, got, ok, c.want)
		}
	}
	for name, want := range map[string]uint64{"claim_seconds": 2, "mark_seconds": 1} {
		if got := families["walrelay_"+name].GetMetric()[0].GetHistogram().GetSampleCount(); got != want {
			t.Errorf("%s has %d observations, want %d", name, got, want)
		}
	}

	st := o.Status().Sources[0].Table
	if st == nil || st.Gear != "poll" || st.Outbox == nil || st.Outbox.LagSeconds != 90 || st.Outbox.Pending != 100_001 || st.Parked == nil ||
		*st.Parked != (ops.ParkedStatus{Parked: 11, Behind: 12, Retrying: 13}) || st.HeldKeys != 10 ||
		st.Shards == nil || *st.Shards != (ops.ShardStatus{Held: 14, Of: 16, Members: 2, Lost: 15}) || st.Marks.Foreign != 6 {
		t.Errorf("status %+v", st)
	}

	page := pageOf(t, o)
	for _, want := range []string{
		"polls the table", "is gone &lt;b&gt;", "oldest unpublished row", "1 min 30 s", "≥ 100\u202f001", "14 of 16", "11 <small>12 behind them", "gone before the mark",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func pageOf(t *testing.T, o *ops.Ops) string {
	t.Helper()
	w := httptest.NewRecorder()
	o.Handler().ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/", http.NoBody))
	return w.Body.String()
}

func TestASourceWithoutATableShowsNone(t *testing.T) {
	t.Parallel()
	o := ops.New(ops.Options{})
	o.Source("orders", streaming())
	if st := o.Status().Sources[0]; st.Table != nil {
		t.Errorf("status %+v", st.Table)
	}
	if page := pageOf(t, o); strings.Contains(page, "Outbox table") {
		t.Error("the page has a part on the table")
	}
	families, _ := scrape(t, o)
	for _, name := range []string{"source_gear", "outbox_lag_seconds", "outbox_rows", "parked_events", "shards_held"} {
		if families["walrelay_"+name] != nil {
			t.Errorf("%s is there", name)
		}
	}
}

func TestAWarningOfASourceIsShownAndLeavesItReady(t *testing.T) {
	t.Parallel()
	o := ops.New(ops.Options{})
	s := o.Source("orders", streaming())
	s.Warning("foreign", event.Condition{What: "somebody else claims rows", Anchor: "foreign-poller"})
	s.Warning("lease", event.Condition{What: "renewals fail"})
	s.Warning("foreign", event.Condition{What: "somebody else claims many rows", Anchor: "foreign-poller"})
	r := o.Readiness()
	if w := r.Sources[0].Warnings; !r.Ready || len(w) != 2 || w[0].What != "somebody else claims many rows" || w[0].Anchor != "foreign-poller" {
		t.Errorf("%+v", r)
	}
	s.Warning("foreign", event.Condition{})
	s.Warning("never", event.Condition{})
	if w := o.Readiness().Sources[0].Warnings; len(w) != 1 || w[0].What != "renewals fail" {
		t.Errorf("%+v", w)
	}
}
