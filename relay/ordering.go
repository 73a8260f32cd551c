package relay

import "time"

// Ordering says how records are put in the order of their stamps (event.ByStamp).
// Package reorder explains the bounds, and proves what follows from them.
type Ordering struct {
	// Transaction is the longest time from an event's stamp to the commit of its transaction; Staged the
	// longest from its stamp to the begin; ClockError how far a producer's clock may be behind that of the
	// source's server.
	Transaction, Staged, ClockError time.Duration
	// MaxDrift is how far a stamp may be ahead of the commit of its event before it counts as faulty.
	MaxDrift time.Duration
	// BufferBytes bounds the events of one source that wait, with what is kept about them.
	BufferBytes int64
	// Every is the time between two readings of a source's clock.
	Every time.Duration
	// HaltOnLate stops a source whose event comes too late for its place; otherwise it is
	// published at once. LateHeader adds the header walrelay_late to it.
	HaltOnLate, LateHeader bool
	// StallAfter is how long a source's server may not be heard of before the others go on
	// without it; zero: for ever.
	StallAfter time.Duration
}
