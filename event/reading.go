package event

// Reading is one look at a source's own server, for the order of stamps. What it
// says was read in the order of its fields, and that order is what it is worth: a
// transaction that was not open when OldestMicros was read either began after NowMicros, or has
// committed below At.
//
// Both times are microseconds since 1970 UTC by the server's clock.
type Reading struct {
	// NowMicros is the server's time.
	NowMicros int64
	// OldestMicros is the begin of the oldest open transaction that may write events; equal to
	// NowMicros where none is open, zero where it is not known.
	OldestMicros int64
	// At is the end of the log.
	At Position
}
