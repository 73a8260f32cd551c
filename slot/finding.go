package slot

import (
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
	// OK: streaming is possible as far as this goes.
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

// firstFailure is nil when all findings are good.
func firstFailure(findings []Finding) error {
	for _, f := range findings {
		if f.Err != nil {
			return f.Err
		}
	}
	return nil
}
