package mongostream

import (
	"errors"

	"github.com/walrelay/walrelay/event"
)

// bearable makes warnings of what the relay can do without: where the collection is
// polled as long as there can be no stream, or makes up for a gap.
func (o *Options) bearable(findings []event.Finding) []event.Finding {
	for i, f := range findings {
		switch {
		case f.Err == nil:
		case o.Capture == CaptureAuto:
			findings[i] = event.Warned(f.Setting, f.Is, f.Needs, "the collection is polled until then; "+f.Remedy)
		case o.makesUpForGaps() && f.Err.Fault == event.FaultGap:
			findings[i] = event.Warned(f.Setting, f.Is, f.Needs, "the relay begins at a new position and publishes what the collection still holds, since on_gap is catch_up")
		}
	}
	return findings
}

func asError(err error) *event.Error {
	var e *event.Error
	if errors.As(err, &e) {
		return e
	}
	return &event.Error{Class: event.ClassOf(err), What: err.Error(), Anchor: AnchorServer, Remedy: "read the error"}
}
