package decoder

import "github.com/walrelay/walrelay/event"

// Commit closes the transaction at hand.
type Commit struct {
	// CommitLSN is where the commit record begins.
	CommitLSN event.LSN
	// EndLSN is where it ends: the only position that may be confirmed.
	EndLSN event.LSN
	// CommitMicros is the commit time, microseconds since 1970 UTC.
	CommitMicros int64
}

// Kind is KindCommit.
func (*Commit) Kind() Kind { return KindCommit }

// read reads a Commit:
//
//	+-----+---------+------------------+---------------+-------------------+
//	| 'C' | Int8(0) | Int64 commit LSN | Int64 end LSN | Int64 commit time |
//	+-----+---------+------------------+---------------+-------------------+
func (m *Commit) read(c *cursor) Message {
	c.unusedFlags()
	m.CommitLSN = event.LSN(c.u64())
	m.EndLSN = event.LSN(c.u64())
	m.CommitMicros = c.micros()
	return m
}
