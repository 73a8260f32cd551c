package stage

import (
	"errors"

	"github.com/walrelay/walrelay/hlc"
)

// DefaultNodeKey is the node key of applications that set none: it names the mark
// that a process raises in the checkpoint of its clock.
const DefaultNodeKey = "default"

// ErrNoTransaction is what a flush wraps that needs a transaction and was given
// something else.
var ErrNoTransaction = errors.New("no transaction")

// Result is what a flush did.
type Result struct {
	// Written is how many events are now in the transaction.
	Written int
	// Ignored are the events whose route and event id were there already, in the order
	// of staging. The row that was there stands. It may be the same event, of an attempt
	// whose commit's answer was lost.
	Ignored []Staged
	// Mark is the greatest stamp of the flush, ignored events included; 0 when nothing
	// was staged. The checkpoint covers it.
	Mark hlc.Stamp
}
