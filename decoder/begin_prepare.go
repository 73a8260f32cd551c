package decoder

import "github.com/walrelay/walrelay/event"

// BeginPrepare opens a transaction of a two-phase commit; its changes follow,
// then its Prepare.
type BeginPrepare struct {
	PrepareLSN event.LSN
	EndLSN     event.LSN
	// PrepareMicros is the time of the PREPARE, microseconds since 1970 UTC.
	PrepareMicros int64
	XID           uint32
	// GID is the name that the application gave; it aliases the input.
	GID []byte
}

// Kind is KindBeginPrepare.
func (*BeginPrepare) Kind() Kind { return KindBeginPrepare }

// read reads a Begin Prepare:
//
//	+-----+-------------------+---------------+--------------------+-----------+------------+
//	| 'b' | Int64 prepare LSN | Int64 end LSN | Int64 prepare time | Int32 xid | String gid |
//	+-----+-------------------+---------------+--------------------+-----------+------------+
func (m *BeginPrepare) read(c *cursor) Message {
	m.PrepareLSN = event.LSN(c.u64())
	m.EndLSN = event.LSN(c.u64())
	m.PrepareMicros = c.micros()
	m.XID = c.u32()
	m.GID = c.str()
	return m
}
