package decoder

// StreamStart opens a block of changes of a transaction that is still in
// progress. Until its StreamStop, changes carry the xid of their (sub)transaction.
type StreamStart struct {
	XID uint32
	// First: the transaction's first block.
	First bool
}

// Kind is KindStreamStart.
func (*StreamStart) Kind() Kind { return KindStreamStart }

// read reads a Stream Start:
//
//	+-----+-----------+------------+
//	| 'S' | Int32 xid | Int8 first |
//	+-----+-----------+------------+
func (m *StreamStart) read(c *cursor, d *Decoder) Message {
	m.XID = c.u32()
	m.First = c.bit()
	d.inStream = c.done()
	return m
}
