package mongostream

import (
	"errors"
	"strings"

	"github.com/walrelay/walrelay/event"
)

// Finding is the state of one precondition, for a line of 'walrelay check'.
type Finding struct {
	// Setting names what was looked at.
	Setting string
	// Is and Needs are the present and the needed value, in words.
	Is, Needs string
	// Remedy is what to do when OK is false, or Warning is true.
	Remedy string
	// OK: reading is possible as far as this goes.
	OK bool
	// Warning: it works, but somebody should look at it.
	Warning bool
	// Err is set when OK is false.
	Err *event.Error
}

func fine(setting, is, needs string) Finding {
	return Finding{Setting: setting, Is: is, Needs: needs, OK: true}
}

func warning(setting, is, needs, remedy string) Finding {
	return Finding{Setting: setting, Is: is, Needs: needs, Remedy: remedy, OK: true, Warning: true}
}

func failing(setting, is, needs string, err *event.Error) Finding {
	return Finding{Setting: setting, Is: is, Needs: needs, Remedy: err.Remedy, Err: err}
}

// explained is a failing finding that says the error's sentence and cause. The
// remedy has a place of its own, and the setting is not named twice.
func explained(setting, is, needs string, err *event.Error) Finding {
	plain := *err
	plain.Remedy = ""
	why := strings.TrimPrefix(plain.Error(), setting+" ")
	if is != "" {
		why = is + ": " + why
	}
	return failing(setting, why, needs, err)
}

// bearable makes warnings of what the relay can do without: where the collection is
// polled as long as there can be no stream, or makes up for a gap.
func (o *Options) bearable(findings []Finding) []Finding {
	for i, f := range findings {
		switch {
		case f.Err == nil:
		case o.Capture == CaptureAuto:
			findings[i] = warning(f.Setting, f.Is, f.Needs, "the collection is polled until then; "+f.Remedy)
		case o.makesUpForGaps() && f.Err.Fault == event.FaultGap:
			findings[i] = warning(f.Setting, f.Is, f.Needs, "the relay begins at a new position and publishes what the collection still holds, since on_gap is catch_up")
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
