package mongostream

import (
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/event"
)

const base = 1_700_000_000

func at(seconds int) bson.Timestamp { return bson.Timestamp{T: uint32(base + seconds), I: 1} }

func minute(n int) time.Time { return time.Unix(base, 0).Add(time.Duration(n) * time.Minute) }

func TestFiguresAreDifferencesOfClusterTimes(t *testing.T) {
	t.Parallel()
	var m Monitor
	f := Facts{Applied: at(1000), Majority: at(990), Member: "a:1", Offset: time.Millisecond}
	r := m.report(minute(0), f, oplog{Oldest: at(100), Newest: at(1000)}, true, at(980), at(700))
	want := event.StreamReport{
		StreamLag: 10 * time.Second, CheckpointLag: 290 * time.Second, MajorityLag: 10 * time.Second, OplogWindow: 900 * time.Second,
		Headroom: 600 * time.Second, HeadroomETA: event.Unmeasured, ClockOffset: time.Millisecond,
		Majority: event.AtToken("826553F4DE00000002"), Member: "a:1", At: minute(0),
	}
	if r != want {
		t.Errorf("report\n%+v, want\n%+v", r, want)
	}
}

func TestWhatNobodyTellsIsUnmeasured(t *testing.T) {
	t.Parallel()
	var m Monitor
	r := m.report(minute(0), Facts{}, oplog{}, false, bson.Timestamp{}, bson.Timestamp{})
	for name, d := range map[string]time.Duration{
		"stream lag": r.StreamLag, "checkpoint lag": r.CheckpointLag, "majority lag": r.MajorityLag,
		"window": r.OplogWindow, "headroom": r.Headroom, "ETA": r.HeadroomETA,
	} {
		if d != event.Unmeasured {
			t.Errorf("%s is %v", name, d)
		}
	}
	for key, c := range Warnings(r) {
		if c.What != "" {
			t.Errorf("%s: %s", key, c.What)
		}
	}
}

// shrinking is a monitor's reports, one a minute, of an oplog that is cut by 60 s a minute while the position stays.
func shrinking(m *Monitor, reports int) (r event.StreamReport) {
	for n := range reports {
		f := Facts{Applied: at(10_000 + 60*n), Majority: at(10_000 + 60*n), Member: "a:1"}
		r = m.report(minute(n), f, oplog{Oldest: at(60 * n), Newest: at(10_000 + 60*n)}, true, at(10_000), at(4000))
	}
	return r
}

func TestTheTimeUntilThePositionIsLostFollowsThePace(t *testing.T) {
	t.Parallel()
	var m Monitor
	r := shrinking(&m, 5)
	if r.Headroom != 3760*time.Second || r.HeadroomETA.Round(time.Second) != 3760*time.Second || !r.Cut {
		t.Errorf("headroom %v, lost in %v", r.Headroom, r.HeadroomETA)
	}
	if len(m.samples) > 3 {
		t.Errorf("%d samples are kept", len(m.samples))
	}
	// After an election the oplog is another's.
	f := Facts{Applied: at(10_300), Majority: at(10_300), Member: "b:1"}
	if r = m.report(minute(5), f, oplog{Oldest: at(3990), Newest: at(10_300)}, true, at(10_000), at(4000)); r.HeadroomETA != event.Unmeasured || r.Cut {
		t.Errorf("with one look at the new primary: %+v", r)
	}
}

func TestRoomIsWarnedOfByHalfAndByAFifth(t *testing.T) {
	t.Parallel()
	r := event.StreamReport{OplogWindow: 10 * time.Hour, HeadroomETA: event.Unmeasured, Cut: true}
	for _, c := range []struct {
		headroom, eta time.Duration
		want          string
	}{
		{6 * time.Hour, event.Unmeasured, ""},
		{4 * time.Hour, event.Unmeasured, "the position is 4h0m0s before the end of the oplog's 10h0m0s (40 %)"},
		{time.Hour, event.Unmeasured, "critical: the position is 1h0m0s before"},
		{0, event.Unmeasured, "critical: "},
		{6 * time.Hour, 59 * time.Minute, "critical: the position is 6h0m0s before the end of the oplog's 10h0m0s (60 %); at this pace it is lost in 59m0s"},
		{6 * time.Hour, 2 * time.Hour, ""},
		{event.Unmeasured, event.Unmeasured, ""},
	} {
		r.Headroom, r.HeadroomETA = c.headroom, c.eta
		got := Warnings(r)[warnHeadroom]
		if !strings.HasPrefix(got.What, c.want) || (c.want == "") != (got.What == "") || got.What != "" && (got.Anchor != AnchorHeadroom || got.Remedy == "") {
			t.Errorf("%v, lost in %v: %+v", c.headroom, c.eta, got)
		}
	}
	r.Headroom, r.Cut = time.Minute, false
	if got := Warnings(r)[warnHeadroom]; got.What != "" {
		t.Errorf("nothing is cut off yet: %+v", got)
	}
}

func TestAStalledMajorityAndAStillStreamAreSaid(t *testing.T) {
	t.Parallel()
	r := event.StreamReport{MajorityLag: 30 * time.Second, StillFor: 5 * time.Minute}
	if w := Warnings(r); w[warnMajority].What != "" || w[warnQuiet].What != "" {
		t.Errorf("too early: %+v", w)
	}
	r = event.StreamReport{MajorityLag: 31 * time.Second, StillFor: 301 * time.Second, StreamLag: time.Hour}
	if w := Warnings(r); w[warnMajority].Anchor != AnchorMajority || !strings.HasPrefix(w[warnMajority].What, "stalled: majority") || w[warnQuiet].Anchor != AnchorQuiet {
		t.Errorf("%+v", w)
	}
	// An idle server brings nothing new, and that is no standstill.
	var m Monitor
	for n := range 10 {
		idle := m.report(minute(n), Facts{Applied: at(0), Majority: at(0)}, oplog{}, false, at(0), at(0))
		if idle.StillFor != 0 {
			t.Fatalf("idle for %v", idle.StillFor)
		}
	}
	var still event.StreamReport
	for n := range 10 {
		still = m.report(minute(10+n), Facts{Applied: at(60 * n), Majority: at(60 * n)}, oplog{}, false, at(0), at(0))
	}
	if still.StillFor != 9*time.Minute {
		t.Errorf("still for %v", still.StillFor)
	}
}
