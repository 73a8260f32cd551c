package ops_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/ops"
)

const second = 1 << 32 // of a cluster time

func clusterSource(o *ops.Ops, p *event.Progress) *ops.Source {
	return o.Source("catalog", ops.SourceProbes{
		ClusterTimes: true,
		Progress:     func() event.Progress { return *p },
		State:        func() (event.State, event.Condition) { return event.StateStreaming, event.Condition{} },
	})
}

func TestAStreamsFiguresAreShownAndWhatIsNotToldIsAbsent(t *testing.T) {
	t.Parallel()
	o := ops.New(ops.Options{Name: "shop"})
	s := clusterSource(o, &event.Progress{Server: 1_700_000_010 * second, Received: 1_700_000_009 * second, Published: 1_700_000_004 * second, Confirmed: 1_700_000_003*second + 7})
	s.StreamReport(event.StreamReport{
		StreamLag: time.Second, CheckpointLag: 7 * time.Second, MajorityLag: 0, OplogWindow: 24 * time.Hour,
		Headroom: 12 * time.Hour, HeadroomETA: event.Unmeasured, Member: "db1:27017", ClockOffset: -250 * time.Millisecond,
	})
	families, _ := scrape(t, o)
	for name, want := range map[string]float64{
		"walrelay_stream_lag_seconds": 1, "walrelay_checkpoint_lag_seconds": 7, "walrelay_majority_lag_seconds": 0,
		"walrelay_oplog_window_seconds": 86400, "walrelay_position_headroom_seconds": 43200, "walrelay_source_clock_offset_seconds": -.25,
	} {
		if got, known := value(t, families, name, "catalog"); !known || got != want {
			t.Errorf("%s is %v (%v), want %v", name, got, known, want)
		}
	}
	if got, _ := value(t, families, "walrelay_position_timestamp_seconds", "catalog", "confirmed"); got != 1_700_000_003 {
		t.Errorf("the confirmed position is at %v", got)
	}
	for _, name := range []string{"walrelay_position_headroom_eta_seconds", "walrelay_position_bytes", "walrelay_lag_bytes"} {
		if families[name] != nil {
			t.Errorf("%s is there", name)
		}
	}
	st := o.Status().Sources[0]
	if last := st.Ladder[len(st.Ladder)-1]; last.LSN != "2023-11-14T22:13:23Z.7" || last.BehindBytes != 0 || *last.BehindSeconds != 7 {
		t.Errorf("ladder %+v", st.Ladder)
	}
	if st.Stream == nil || *st.Stream.HeadroomSeconds != 43200 || st.Stream.HeadroomETASeconds != nil {
		t.Errorf("stream %+v", st.Stream)
	}
	page := httptest.NewRecorder()
	o.Handler().ServeHTTP(page, httptest.NewRequest("GET", "/", nil))
	for _, text := range []string{"Change stream", "12 h 00 min", "db1:27017", "2023-11-14T22:13:23Z.7", "7.0 s"} {
		if !strings.Contains(page.Body.String(), text) {
			t.Errorf("the page lacks %q", text)
		}
	}
	if strings.Contains(page.Body.String(), "used up in") {
		t.Error("the page shows what nobody knows")
	}
}

// Others write all the time: the stream is never at the end of the log, and yet nothing of ours is left.
func TestLagOfAStreamNeverGrowsWhileThePositionMoves(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_100, 0)
	o := ops.New(ops.Options{Name: "shop", Clock: func() time.Time { return now }})
	p := event.Progress{Server: 1_700_000_100 * second, Published: 1_700_000_098 * second}
	s := clusterSource(o, &p)
	s.Published(1, 1_600_000_000_000_000)
	lag := o.Status().Sources[0].LagSeconds
	if lag == nil || *lag != 2 {
		t.Errorf("lag %v, want 2 s", lag)
	}
	p.Published = p.Server
	if lag = o.Status().Sources[0].LagSeconds; lag == nil || *lag != 0 {
		t.Errorf("lag %v, want 0", lag)
	}
}
