package decoder

import "github.com/walrelay/walrelay/event"

// StreamCommit commits a transaction that was streamed in blocks.
type StreamCommit struct {
	XID uint32
	// CommitLSN is where the commit record begins.
	CommitLSN event.LSN
	// EndLSN is where it ends: the only position that may be confirmed.
	EndLSN event.LSN
	// CommitMicros is the commit time, microseconds since 1970 UTC.
	CommitMicros int64
}

// Kind is KindStreamCommit.
func (*StreamCommit) Kind() Kind { return KindStreamCommit }

// read reads a Stream Commit:
//
//	+-----+-----------+---------+------------------+---------------+-------------------+
//	| 'c' | Int32 xid | Int8(0) | Int64 commit LSN | Int64 end LSN | Int64 commit time |
//	+-----+-----------+---------+------------------+---------------+-------------------+
func (m *StreamCommit) read(c *cursor) Message {
	m.XID = c.u32()
	c.unusedFlags()
	m.CommitLSN = event.LSN(c.u64())
	m.EndLSN = event.LSN(c.u64())
	m.CommitMicros = c.micros()
	return m
}
