package capture

import (
	"testing"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/slot"
)

func TestGearFollowsFromWhatTheServerSays(t *testing.T) {
	t.Parallel()
	halt := func(f event.Fault, a event.Anchor) error {
		return &event.Error{Class: event.Halt, Fault: f, Anchor: a, What: "no"}
	}
	gap := halt(event.FaultGap, slot.AnchorSlotLost)
	denied := halt(event.FaultPrecondition, slot.AnchorRights)
	fresh := halt(event.FaultPrecondition, slot.AnchorNotInitialised)
	again := &event.Error{Class: event.Retry, What: "later"}
	polled := &slot.Marker{Phase: slot.PhasePolled}
	created, streaming := &slot.Marker{Phase: slot.PhaseCreated}, &slot.Marker{Phase: slot.PhaseStreaming}

	for _, c := range []struct {
		name    string
		capture slot.Capture
		onGap   slot.OnGap
		marker  *slot.Marker
		active  bool
		deletes bool
		err     error
		want    plan
		fails   bool
	}{
		{name: "all is well", marker: streaming, want: plan{gear: GearLog}},
		{name: "a slot that was just made: what is pending comes first", marker: created, want: plan{gear: GearCatchUp}},
		{name: "the table was read past a slot that is well, and rows are marked", marker: polled, want: plan{gear: GearCatchUp}},
		{name: "the same, and rows are deleted", deletes: true, marker: polled, want: plan{gear: GearCatchUp, renew: true, force: true}},
		{name: "no marker yet", want: plan{gear: GearCatchUp}},
		{name: "another relay reads", marker: created, active: true, want: plan{gear: GearLog}},
		{name: "a passing trouble", err: again, fails: true},
		{name: "a gap, and stop is the rule", err: gap, want: plan{gear: GearLog}},
		{name: "a gap, and catching up is", onGap: slot.GapCatchUp, err: gap, want: plan{gear: GearCatchUp, renew: true, why: gap}},
		{name: "a gap in auto", capture: slot.CaptureAuto, err: gap, want: plan{gear: GearCatchUp, renew: true, why: gap}},
		{name: "no right, log", err: denied, want: plan{gear: GearLog}},
		{name: "no right, log, catching up", onGap: slot.GapCatchUp, err: denied, want: plan{gear: GearLog}},
		{name: "no right, auto", capture: slot.CaptureAuto, err: denied, want: plan{gear: GearPoll, why: denied}},
		{name: "no slot yet, log: init is the operator's", err: fresh, want: plan{gear: GearLog}},
		{name: "no slot yet, auto", capture: slot.CaptureAuto, err: fresh, want: plan{gear: GearCatchUp, renew: true, why: fresh}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cap := &Capture{opt: Options{
				Slot: slot.Options{Capture: c.capture, OnGap: c.onGap, WriteBack: slot.MarkRows, Tables: make([]slot.Table, 1)},
			}}
			if c.deletes {
				cap.opt.Slot.WriteBack = slot.DeleteRows
			}
			got, err := cap.judge(c.marker, c.active, c.err)
			if (err != nil) != c.fails {
				t.Fatalf("error %v", err)
			}
			if !c.fails && got != c.want {
				t.Fatalf("plan %+v, want %+v", got, c.want)
			}
		})
	}
}
