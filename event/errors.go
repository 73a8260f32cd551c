package event

import (
	"errors"
	"strings"
)

// Class is what has to happen after an error.
type Class uint8

// The classes. An error that does not answer is Halt: going on after something
// nobody understood is how events get lost.
const (
	// Halt: the source stops until an operator acts.
	Halt Class = iota
	// Retry: back off and go on; nothing is wrong with the event.
	Retry
	// Poison: this one event can never be published; policy decides.
	Poison
)

func (c Class) String() string {
	switch c {
	case Retry:
		return "retry"
	case Poison:
		return "poison"
	default:
		return "halt"
	}
}

// Fault tells the kinds of Halt apart; the exit code follows from it.
type Fault uint8

// The kinds of Halt.
const (
	FaultOther Fault = iota
	// FaultUsage is a wrong option or file.
	FaultUsage
	// FaultPrecondition is a setting, right or object that is missing on a server.
	FaultPrecondition
	// FaultGap is a lost, replaced or advanced position.
	FaultGap
	// FaultUnacknowledged means that events were left without acknowledgement.
	FaultUnacknowledged
)

// Anchor names a section of docs/runbook.md.
type Anchor string

// Error is an error that answers its class and names the remedy.
type Error struct {
	Class Class
	Fault Fault
	// What happened, as a sentence with the values that differ.
	What string
	// Remedy is the operator's next step; required for Halt.
	Remedy string
	// Anchor is the section of docs/runbook.md.
	Anchor Anchor
	// Cause may be nil.
	Cause error
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.What)
	if e.Cause != nil {
		b.WriteString(": ")
		b.WriteString(e.Cause.Error())
	}
	if e.Remedy != "" {
		b.WriteString(" (remedy: ")
		b.WriteString(e.Remedy)
		b.WriteString(")")
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Cause }

// ErrorClass answers for the error.
func (e *Error) ErrorClass() Class { return e.Class }

// Classed is an error that answers its class.
type Classed interface {
	error
	ErrorClass() Class
}

// ClassOf finds the class of the outermost error in the chain that answers;
// Halt when none does.
func ClassOf(err error) Class {
	if err == nil {
		return Halt // and spares the path of every event what looking costs
	}
	var c Classed
	if errors.As(err, &c) {
		return c.ErrorClass()
	}
	return Halt
}

// ConditionOf is what an error says to people: sentence, remedy and anchor.
func ConditionOf(err error) Condition {
	var e *Error
	if !errors.As(err, &e) {
		return Condition{What: err.Error()}
	}
	// What wraps the error says where it happened: keep that in front.
	what, _ := strings.CutSuffix(err.Error(), e.Error())
	what += e.What
	if e.Cause != nil {
		what += ": " + e.Cause.Error()
	}
	return Condition{What: what, Remedy: e.Remedy, Anchor: e.Anchor}
}

// ErrTurn is what a source's Next wraps when the source is complete and its
// successor is to be opened in its place, once everything that it handed out is settled.
var ErrTurn = errors.New("the source gives way to its successor")

// ErrHeld is why an event is put aside that has nothing wrong with it: an earlier
// event of its key waits.
var ErrHeld = errors.New("an earlier event of its key waits")
