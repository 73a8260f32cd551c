package decoder

import "github.com/walrelay/walrelay/event"

// StreamPrepare ends the first phase of a transaction that was streamed in blocks.
type StreamPrepare struct {
	PrepareLSN event.LSN
	EndLSN     event.LSN
	// PrepareMicros is the time of the PREPARE, microseconds since 1970 UTC.
	PrepareMicros int64
	XID           uint32
	// GID aliases the input.
	GID []byte
}

// Kind is KindStreamPrepare.
func (*StreamPrepare) Kind() Kind { return KindStreamPrepare }

// read reads a Stream Prepare:
//
//	+-----+---------+-------------------+---------------+--------------------+-----------+------------+
//	| 'p' | Int8(0) | Int64 prepare LSN | Int64 end LSN | Int64 prepare time | Int32 xid | String gid |
//	+-----+---------+-------------------+---------------+--------------------+-----------+------------+
func (m *StreamPrepare) read(c *cursor) Message {
	c.unusedFlags()
	m.PrepareLSN = event.LSN(c.u64())
	m.EndLSN = event.LSN(c.u64())
	m.PrepareMicros = c.micros()
	m.XID = c.u32()
	m.GID = c.str()
	return m
}
