package decoder

import "github.com/walrelay/walrelay/event"

// Begin opens a transaction; its changes follow, then its Commit.
type Begin struct {
	// FinalLSN is where the commit record begins: the CommitLSN of the Commit to come.
	FinalLSN event.LSN
	// CommitMicros is the commit time, microseconds since 1970 UTC.
	CommitMicros int64
	XID          uint32
}

// Kind is KindBegin.
func (*Begin) Kind() Kind { return KindBegin }

// read reads a Begin:
//
//	+-----+-----------------+-------------------+-----------+
//	| 'B' | Int64 final LSN | Int64 commit time | Int32 xid |
//	+-----+-----------------+-------------------+-----------+
func (m *Begin) read(c *cursor) Message {
	m.FinalLSN = event.LSN(c.u64())
	m.CommitMicros = c.micros()
	m.XID = c.u32()
	return m
}
