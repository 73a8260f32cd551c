package event

import "strings"

// Finding is the state of one precondition, for a line of 'walrelay check'.
type Finding struct {
	// Setting names what was looked at.
	Setting string
	// Is and Needs are the present and the needed value, in words.
	Is, Needs string
	// Remedy is what to do when OK is false, or Warning is true.
	Remedy string
	// OK: reading, or publishing, is possible as far as this goes.
	OK bool
	// Warning: it works, but somebody should look at it.
	Warning bool
	// Err is set when OK is false and the room knows more than the remedy.
	Err *Error
}

// Fine is a finding that is as it should be.
func Fine(setting, is, needs string) Finding {
	return Finding{Setting: setting, Is: is, Needs: needs, OK: true}
}

// Warned is a finding that stops nothing.
func Warned(setting, is, needs, remedy string) Finding {
	return Finding{Setting: setting, Is: is, Needs: needs, Remedy: remedy, OK: true, Warning: true}
}

// Failing is a finding that has the error's remedy.
func Failing(setting, is, needs string, err *Error) Finding {
	return Finding{Setting: setting, Is: is, Needs: needs, Remedy: err.Remedy, Err: err}
}

// Explained is a failing finding that says the error's sentence and cause. The
// remedy has a place of its own, and the setting is not named twice.
func Explained(setting, is, needs string, err *Error) Finding {
	plain := *err
	plain.Remedy = ""
	why := strings.TrimPrefix(plain.Error(), setting+" ")
	if is != "" {
		why = is + ": " + why
	}
	return Failing(setting, why, needs, err)
}
