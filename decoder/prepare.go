package decoder

import "github.com/walrelay/walrelay/event"

// Prepare ends the first phase. Nothing is committed yet: the transaction may
// still be rolled back.
type Prepare struct {
	PrepareLSN event.LSN
	EndLSN     event.LSN
	// PrepareMicros is the time of the PREPARE, microseconds since 1970 UTC.
	PrepareMicros int64
	XID           uint32
	// GID aliases the input.
	GID []byte
}

// Kind is KindPrepare.
func (*Prepare) Kind() Kind { return KindPrepare }

// read reads a Prepare:
//
//	+-----+---------+-------------------+---------------+--------------------+-----------+------------+
//	| 'P' | Int8(0) | Int64 prepare LSN | Int64 end LSN | Int64 prepare time | Int32 xid | String gid |
//	+-----+---------+-------------------+---------------+--------------------+-----------+------------+
func (m *Prepare) read(c *cursor) Message {
	c.unusedFlags()
	m.PrepareLSN = event.LSN(c.u64())
	m.EndLSN = event.LSN(c.u64())
	m.PrepareMicros = c.micros()
	m.XID = c.u32()
	m.GID = c.str()
	return m
}
