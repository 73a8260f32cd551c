package decoder

import "github.com/walrelay/walrelay/event"

// LogicalMessage is what pg_logical_emit_message wrote.
type LogicalMessage struct {
	// XID is the (sub)transaction inside a streamed block, else zero.
	XID uint32
	// Transactional: it belongs to the transaction at hand. Otherwise it stands
	// outside of any, and survives a rollback.
	Transactional bool
	// LSN is the end of the message's record; not a position to confirm.
	LSN event.LSN
	// Prefix and Content alias the input. Either may be empty.
	Prefix, Content []byte
}

// Kind is KindMessage.
func (*LogicalMessage) Kind() Kind { return KindMessage }

// read reads a Message:
//
//	+-----+-------------+------------+-----------+---------------+--------------+---------+
//	| 'M' | Int32 xid * | Int8 flags | Int64 LSN | String prefix | Int32 length | content |
//	+-----+-------------+------------+-----------+---------------+--------------+---------+
//	* inside a streamed block only
//	flags: 0, or 1 for a transactional message
func (m *LogicalMessage) read(c *cursor, d *Decoder) Message {
	m.XID = d.xid(c)
	m.Transactional = c.bit()
	m.LSN = event.LSN(c.u64())
	m.Prefix = c.str()
	m.Content = c.bytes(c.u32())
	return m
}
