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

	for _, c := range []struct {
		name    string
		capture Mode
		catchUp bool
		phase   event.Phase
		active  bool
		deletes bool
		err     error
		want    plan
		fails   bool
	}{
		{name: "all is well", phase: event.PhaseStreaming, want: plan{gear: GearLog}},
		{name: "a slot that was just made: what is pending comes first", phase: event.PhaseCreated, want: plan{gear: GearCatchUp}},
		{name: "the table was read past a slot that is well, and rows are marked", phase: event.PhasePolled, want: plan{gear: GearCatchUp}},
		{name: "the same, and rows are deleted", deletes: true, phase: event.PhasePolled, want: plan{gear: GearCatchUp, renew: true, force: true}},
		{name: "no marker yet", want: plan{gear: GearCatchUp}},
		{name: "another relay reads", phase: event.PhaseStreaming, active: true, want: plan{gear: GearLog}},
		{name: "another relay looks ahead, or did when it died", phase: event.PhaseCreated, active: true, want: plan{gear: GearCatchUp}},
		{name: "a passing trouble", err: again, fails: true},
		{name: "a gap, and stop is the rule", err: gap, want: plan{gear: GearLog}},
		{name: "a gap, and catching up is", catchUp: true, err: gap, want: plan{gear: GearCatchUp, renew: true, why: gap}},
		{name: "a gap in auto", capture: ModeAuto, err: gap, want: plan{gear: GearCatchUp, renew: true, why: gap}},
		{name: "no right, log", err: denied, want: plan{gear: GearLog}},
		{name: "no right, log, catching up", catchUp: true, err: denied, want: plan{gear: GearLog}},
		{name: "no right, auto", capture: ModeAuto, err: denied, want: plan{gear: GearPoll, why: denied}},
		{name: "no slot yet, log: init is the operator's", err: fresh, want: plan{gear: GearLog}},
		{name: "no slot yet, auto", capture: ModeAuto, err: fresh, want: plan{gear: GearCatchUp, renew: true, why: fresh}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cap := &Capture{opt: Options{Mode: c.capture, CatchUp: c.catchUp, Marks: true, Deletes: c.deletes}}
			got, err := cap.judge(c.phase, c.active, c.err)
			if (err != nil) != c.fails {
				t.Fatalf("error %v", err)
			}
			if !c.fails && got != c.want {
				t.Fatalf("plan %+v, want %+v", got, c.want)
			}
		})
	}
}
