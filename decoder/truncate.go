package decoder

// Truncate empties relations. Rows committed before it are in the log before it.
type Truncate struct {
	// XID is the (sub)transaction inside a streamed block, else zero.
	XID uint32
	// Options are those of the statement: TruncateCascade, TruncateRestart.
	Options uint8
	// Relations are in the message's order.
	Relations []*Relation
}

// Options of a Truncate, as in Postgres' proto.c.
const (
	TruncateCascade uint8 = 1 << 0
	TruncateRestart uint8 = 1 << 1 // RESTART IDENTITY
)

// Kind is KindTruncate.
func (*Truncate) Kind() Kind { return KindTruncate }

// read reads a Truncate:
//
//	+-----+-------------+---------+--------------+------------------------------+
//	| 'T' | Int32 xid * | Int32 n | Int8 options | n × Int32 relation oid       |
//	+-----+-------------+---------+--------------+------------------------------+
//	* inside a streamed block only
func (m *Truncate) read(c *cursor, d *Decoder) Message {
	m.XID = d.xid(c)
	n := c.u32()
	m.Options = c.u8()
	m.Relations = m.Relations[:0]
	// The check keeps a lying count from looping: it stops with the bytes.
	for ; n > 0 && c.fault == faultNone; n-- {
		m.Relations = append(m.Relations, d.known(c))
	}
	return m
}
