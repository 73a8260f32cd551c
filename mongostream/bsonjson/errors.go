package bsonjson

import (
	"fmt"

	"github.com/walrelay/walrelay/event"
)

// anchorPoisonRow is the runbook's section about rows that cannot be made into events.
const anchorPoisonRow event.Anchor = "poison-row"

// Fault is what is wrong with the bytes.
type Fault uint8

// The faults.
const (
	// FaultShort: a value ends after the document that holds it.
	FaultShort Fault = iota + 1
	// FaultLength: a length that its value cannot have.
	FaultLength
	// FaultTerminator: a string, name or document without the zero byte at its end.
	FaultTerminator
	// FaultTail: bytes after the end of the document or value.
	FaultTail
	// FaultType: a type that BSON does not have.
	FaultType
	// FaultBool: a bool that is neither 0 nor 1.
	FaultBool
	// FaultDepth: more nesting than any server accepts.
	FaultDepth
	// FaultText: a string or name that is no UTF-8.
	FaultText
	// FaultNonFinite: NaN or an infinity, which the options refuse.
	FaultNonFinite
)

// Error is a document or value that cannot be written. It is Poison, and unwraps to
// the [*event.Error] with the sentence and the anchor. It holds no payload.
type Error struct {
	Fault Fault
	// Type is the type of the value in which it happened.
	Type Type
	// Offset is the byte of the input at which it happened.
	Offset int

	poison event.Error
}

func (e *Error) Error() string { return e.poison.Error() }

// Unwrap gives the *event.Error.
func (e *Error) Unwrap() error { return &e.poison }

// ErrorClass is always Poison.
func (e *Error) ErrorClass() event.Class { return event.Poison }

func (w *walker) err() error {
	var what string
	switch w.fault {
	case FaultShort:
		what = fmt.Sprintf("needs %d bytes and %d are left", w.want, w.got)
	case FaultLength:
		what = fmt.Sprintf("states a length of %d, which it cannot have (the nearest would be %d)", w.got, w.want)
	case FaultTerminator:
		what = "does not end with a zero byte"
	case FaultTail:
		what = fmt.Sprintf("is followed by %d bytes that belong to nothing", w.got)
	case FaultType:
		what = "is unknown to BSON"
	case FaultBool:
		what = fmt.Sprintf("is %d, neither 0 nor 1", w.got)
	case FaultDepth:
		what = fmt.Sprintf("is nested deeper than %d levels", maxDepth)
	case FaultText:
		what = "is not valid UTF-8"
	case FaultNonFinite:
		what = "is no finite number, which JSON cannot hold and the options refuse"
	}
	return &Error{Fault: w.fault, Type: w.kind, Offset: w.at, poison: event.Error{
		Class: event.Poison, Anchor: anchorPoisonRow,
		What: fmt.Sprintf("BSON of %d bytes: %s at byte %d %s", len(w.src), w.kind, w.at, what),
	}}
}
