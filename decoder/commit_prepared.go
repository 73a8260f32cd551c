package decoder

import "github.com/walrelay/walrelay/event"

// CommitPrepared commits a prepared transaction.
type CommitPrepared struct {
	// CommitLSN is where the commit record begins.
	CommitLSN event.LSN
	// EndLSN is where it ends: the only position that may be confirmed.
	EndLSN event.LSN
	// CommitMicros is the commit time, microseconds since 1970 UTC.
	CommitMicros int64
	XID          uint32
	// GID aliases the input.
	GID []byte
}

// Kind is KindCommitPrepared.
func (*CommitPrepared) Kind() Kind { return KindCommitPrepared }

// read reads a Commit Prepared:
//
//	+-----+---------+------------------+---------------+-------------------+-----------+------------+
//	| 'K' | Int8(0) | Int64 commit LSN | Int64 end LSN | Int64 commit time | Int32 xid | String gid |
//	+-----+---------+------------------+---------------+-------------------+-----------+------------+
func (m *CommitPrepared) read(c *cursor) Message {
	c.unusedFlags()
	m.CommitLSN = event.LSN(c.u64())
	m.EndLSN = event.LSN(c.u64())
	m.CommitMicros = c.micros()
	m.XID = c.u32()
	m.GID = c.str()
	return m
}
