package ops_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/ops"
)

// Case C74: liveness asks for steps of our own loops and for nothing else.
func TestLivenessNeverDependsOnKafkaOrPostgres(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := ops.New(ops.Options{})
		o.Source("orders", ops.SourceProbes{State: func() (event.State, event.Condition) {
			return event.StateDisconnected, event.Condition{What: "connection refused"}
		}})
		o.Broker().Condition("brokers", event.Condition{What: "no broker answers"})
		beat := o.Loop("feeder", time.Minute)
		for range 40 { // 20 minutes in which the loop waits and beats on its timer
			time.Sleep(30 * time.Second)
			beat.Beat()
			if h := o.Health(); !h.Live {
				t.Fatalf("not live while a dependency is away: %+v", h)
			}
			if o.Readiness().Ready {
				t.Fatal("ready while everything is away")
			}
		}
	})
}

func TestLivenessFailsWhenALoopMakesNoStep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := ops.New(ops.Options{})
		o.Source("orders", streaming())
		stuck, ended := o.Loop("committer", time.Minute), o.Loop("sweep", time.Minute)
		ended.End()
		time.Sleep(time.Minute)
		if !o.Health().Live {
			t.Error("not live at the limit")
		}
		time.Sleep(time.Second)
		h := o.Health()
		if h.Live || len(h.Loops) != 1 || h.Loops[0].AgeSeconds != 61 {
			t.Errorf("health %+v, want the stuck loop alone, 61 s old", h)
		}
		if r := o.Readiness(); r.Ready || len(r.Process) != 1 || r.Process[0].Anchor != ops.AnchorStuck {
			t.Errorf("readiness %+v, want unready because of the loop", r)
		}
		stuck.Beat()
		if !o.Health().Live || !o.Readiness().Ready {
			t.Error("still not live after a step")
		}
		// A loop that is started again takes its old place.
		ended = o.Loop("sweep", time.Minute)
		ended.Beat()
		if n := len(o.Health().Loops); n != 2 {
			t.Errorf("%d loops, want 2", n)
		}
	})
}

func streaming() ops.SourceProbes {
	return ops.SourceProbes{State: func() (event.State, event.Condition) { return event.StateStreaming, event.Condition{} }}
}

func TestReadinessFollowsTheSource(t *testing.T) {
	t.Parallel()
	fault := event.Condition{What: "slot is gone", Remedy: "catch up", Anchor: "gap"}
	for _, c := range []struct {
		state event.State
		cond  event.Condition
		ready bool
	}{
		{event.StateStarting, event.Condition{}, false},
		{event.StateConnecting, event.Condition{}, false},
		{event.StateStreaming, event.Condition{}, true},
		{event.StateStreaming, fault, false},
		{event.StateStandby, event.Condition{}, true},
		{event.StateStandby, event.Condition{What: "held by PID 7"}, true},
		{event.StateDraining, event.Condition{}, false},
		{event.StateStopped, event.Condition{}, false},
		{event.StateHalted, fault, false},
		{event.StateDisconnected, event.Condition{}, false},
	} {
		o := ops.New(ops.Options{})
		o.Source("orders", ops.SourceProbes{State: func() (event.State, event.Condition) { return c.state, c.cond }})
		r := o.Readiness()
		if r.Ready != c.ready {
			t.Errorf("%s with %q: ready %t, want %t", c.state, c.cond.What, r.Ready, c.ready)
		}
		if !c.ready && (len(r.Sources[0].Reasons) != 1 || r.Sources[0].Reasons[0].What == "") {
			t.Errorf("%s with %q: unready without a reason", c.state, c.cond.What)
		}
	}
}

func TestARelayWithoutSourcesIsNotReady(t *testing.T) {
	t.Parallel()
	if r := ops.New(ops.Options{}).Readiness(); r.Ready || len(r.Process) != 1 {
		t.Errorf("readiness %+v", r)
	}
}

func TestSlotWarningsDoNotMakeUnreadyAndALostSlotDoes(t *testing.T) {
	t.Parallel()
	const gib = int64(1) << 30
	for _, c := range []struct {
		name     string
		report   event.SlotReport
		ready    bool
		warnings int
	}{
		{"reserved without limit", event.SlotReport{WALStatus: "reserved", SafeBytes: -1, RetainedBytes: gib}, true, 0},
		{"extended", event.SlotReport{WALStatus: "extended", SafeBytes: -1}, true, 1},
		{"extended and little left", event.SlotReport{WALStatus: "extended", SafeBytes: gib, RetainedBytes: 9 * gib}, true, 2},
		{"little left", event.SlotReport{WALStatus: "reserved", SafeBytes: gib, RetainedBytes: 9 * gib}, true, 1},
		{"unreserved", event.SlotReport{WALStatus: "unreserved", SafeBytes: 0, RetainedBytes: 9 * gib}, true, 1},
		{"lost", event.SlotReport{WALStatus: "lost"}, false, 0},
		{"invalidated", event.SlotReport{WALStatus: "reserved", Invalidation: "idle_timeout"}, false, 0},
	} {
		o := ops.New(ops.Options{})
		o.Source("orders", streaming()).SlotReport(c.report)
		r := o.Readiness()
		if r.Ready != c.ready || len(r.Sources[0].Warnings) != c.warnings {
			t.Errorf("%s: ready %t with %d warnings, want %t with %d", c.name, r.Ready, len(r.Sources[0].Warnings), c.ready, c.warnings)
		}
	}
}

func TestACertificateNearItsEndIsAWarningThatKeepsReady(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := ops.New(ops.Options{})
		o.Source("orders", streaming())
		o.Certificate("kafka", time.Now().Add(15*24*time.Hour))
		if n := len(o.Readiness().Warnings); n != 0 {
			t.Errorf("%d warnings 15 days before the end, want 0", n)
		}
		time.Sleep(48 * time.Hour)
		if r := o.Readiness(); !r.Ready || len(r.Warnings) != 1 || r.Warnings[0].Anchor != ops.AnchorCertificate {
			t.Errorf("readiness %+v, want ready with one warning", r)
		}
		o.Certificate("kafka", time.Now().Add(365*24*time.Hour))
		if n := len(o.Readiness().Warnings); n != 0 {
			t.Errorf("%d warnings after the renewal, want 0", n)
		}
	})
}

func TestTheBrokersReasonsComeAndGo(t *testing.T) {
	t.Parallel()
	o := ops.New(ops.Options{})
	o.Source("orders", streaming())
	b := o.Broker()
	b.Condition("t/0", event.Condition{What: "KAFKA_STORAGE_ERROR"})
	b.Condition("t/1", event.Condition{What: "no leader"})
	b.Condition("t/0", event.Condition{})
	if r := o.Readiness(); r.Ready || len(r.Broker) != 1 || r.Broker[0].Key != "t/1" || r.Broker[0].What != "no leader" {
		t.Errorf("readiness %+v, want t/1 alone", r)
	}
	b.Condition("t/1", event.Condition{})
	if !o.Readiness().Ready {
		t.Error("not ready after the last reason went")
	}
}
