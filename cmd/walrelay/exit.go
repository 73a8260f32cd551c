package main

import (
	"errors"
	"strings"

	"github.com/walrelay/walrelay/event"
)

// The exit codes; --help and the README list them.
const (
	exitClean          = 0
	exitOther          = 1
	exitUsage          = 2
	exitPrecondition   = 3
	exitGap            = 4
	exitUnacknowledged = 5
)

// errShown ends a command with exit code 1 after it has told its story itself.
var errShown = errors.New("the command has said what is wrong")

// shown is an error that was printed already; code still follows from it.
type shown struct{ error }

func (s shown) Is(target error) bool { return target == errShown }
func (s shown) Unwrap() error        { return s.error }

func exitCode(err error) int {
	if err == nil {
		return exitClean
	}
	var e *event.Error
	if !errors.As(err, &e) {
		// cobra's own complaints about commands and arguments carry no type.
		for _, p := range []string{"unknown command", "unknown flag", "unknown shorthand", "accepts ", "requires "} {
			if strings.HasPrefix(err.Error(), p) {
				return exitUsage
			}
		}
		return exitOther
	}
	switch e.Fault {
	case event.FaultUsage:
		return exitUsage
	case event.FaultPrecondition:
		return exitPrecondition
	case event.FaultGap:
		return exitGap
	case event.FaultUnacknowledged:
		return exitUnacknowledged
	default:
		return exitOther
	}
}
