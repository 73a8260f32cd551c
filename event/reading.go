package event

// Reading is one look at a source's own server: its clock, what is open there, and
// how long its log is. The fields are in the order in which they must be read, and that
// order is what they are worth: a transaction that was not seen open either began after
// NowMicros, or has its commit below At (package reorder says what follows from it).
//
// Times are microseconds since 1970 UTC by the server's clock.
type Reading struct {
	// NowMicros is the server's clock; read first.
	NowMicros int64
	// OldestMicros is the beginning of the oldest open transaction that may still write
	// events; read second. It equals NowMicros when none is open. Zero: not known, because
	// the right to see it is missing or a prepared transaction is there, whose beginning
	// no server tells.
	OldestMicros int64
	// At is the end of the server's log; read last.
	At Position
}
