package ops_test

import (
	"strings"
	"testing"
	"time"

	"github.com/walrelay/walrelay/ops"
)

// sorted is a source with something of everything that the order of stamps counts.
func sorted(o *ops.Ops) {
	p := streaming()
	p.Inversions = func() (int64, bool) { return 12, true }
	p.Order = func() ops.OrderFigures {
		return ops.OrderFigures{
			Bytes: 1, Events: 2, Oldest: 3 * time.Second, Lag: 4 * time.Second, LagKnown: true,
			Watermark: time.Date(2026, 12, 1, 10, 11, 12, 345e6, time.UTC), Detached: true, Stalled: true,
			Stalls: 5, Late: 6, Early: 7, Future: 8, Unstamped: 9, Raised: 10, Conflicts: 11,
		}
	}
	o.Source("orders", p)
}

func TestTheFiguresOfTheOrderReachMetricsStatusAndPage(t *testing.T) {
	t.Parallel()
	o := ops.New(ops.Options{})
	sorted(o)
	families, _ := scrape(t, o)
	for name, want := range map[string]float64{
		"order_buffer_bytes": 1, "order_buffer_events": 2, "order_oldest_age_seconds": 3, "order_watermark_lag_seconds": 4, "order_detached": 1,
		"order_stalls_total": 5, "order_late_events_total": 6, "order_early_events_total": 7, "order_future_events_total": 8,
		"order_unstamped_events_total": 9, "order_raised_events_total": 10, "order_conflicts_total": 11, "stamp_inversions_total": 12,
	} {
		if got, ok := value(t, families, "walrelay_"+name, "orders"); !ok || got != want {
			t.Errorf("%s is %v (there: %v), want %v", name, got, ok, want)
		}
	}
	src := o.Status().Sources[0]
	st := src.Order
	if st == nil || st.Held != 2 || st.HeldBytes != 1 || st.WatermarkLagSeconds == nil || *st.WatermarkLagSeconds != 4 || st.OldestAgeSeconds != 3 ||
		!st.Stalled || st.Late != 6 || st.Early != 7 || st.Conflicts != 11 || src.Events.Inversions != 12 {
		t.Errorf("status %+v", st)
	}
	page := pageOf(t, o)
	for _, want := range []string{"Order of stamps", "10:11:12.345", "the others go on without it", "stamp inversions"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestASourceInCommitOrderShowsNoOrderOfStamps(t *testing.T) {
	t.Parallel()
	o := ops.New(ops.Options{})
	o.Source("orders", streaming())
	if st := o.Status().Sources[0]; st.Order != nil {
		t.Errorf("status %+v", st.Order)
	}
	if page := pageOf(t, o); strings.Contains(page, "Order of stamps") {
		t.Error("the page has a part on the order of stamps")
	}
	families, _ := scrape(t, o)
	for _, name := range []string{"order_buffer_bytes", "order_watermark_lag_seconds", "order_late_events_total", "order_detached"} {
		if families["walrelay_"+name] != nil {
			t.Errorf("%s is there", name)
		}
	}
}
