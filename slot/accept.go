package slot

import (
	"context"
	"fmt"

	"github.com/walrelay/walrelay/event"
)

// AcceptSlot writes the marker that a relay would have written that had
// confirmed what the slot says: an operator has judged the gap. The slot must
// not be in use.
func AcceptSlot(ctx context.Context, db DB, o Options) (Marker, error) {
	facts, err := readFacts(ctx, db, o.Slot)
	if err != nil {
		return Marker{}, Classify(err, o.scene("reading the slot"))
	}
	switch {
	case !facts.Slot.Exists:
		return Marker{}, precondition(AnchorNotInitialised, fmt.Sprintf("slot %s is not there", o.Slot), "run 'walrelay init' first")
	case facts.Slot.Active:
		return Marker{}, precondition(AnchorSlotActive,
			fmt.Sprintf("slot %s is in use by PID %d (%s)", o.Slot, facts.Slot.ActivePID, facts.Slot.ActiveApp), "stop that relay first")
	}
	print, err := fingerprint(ctx, db, o)
	if err != nil {
		return Marker{}, Classify(err, o.scene("reading the publication"))
	}
	m := Marker{
		SystemID: facts.SystemID, Timeline: facts.Timeline, Slot: o.Slot, Confirmed: facts.Slot.Confirmed,
		Phase: event.PhaseStreaming, Publication: print,
	}
	return m, ReplaceMarker(ctx, db, o, m)
}
