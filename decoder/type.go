package decoder

// TypeMessage names a column type that is not built in. It precedes the relation
// that uses it; what it says is for people, the type's OID stands in the relation.
type TypeMessage struct {
	// XID is the transaction inside a streamed block, else zero.
	XID uint32
	OID uint32
	// Namespace and Name alias the input.
	Namespace, Name []byte
}

// Kind is KindType.
func (*TypeMessage) Kind() Kind { return KindType }

// read reads a Type:
//
//	+-----+-------------+-----------+------------------+-------------+
//	| 'Y' | Int32 xid * | Int32 oid | String namespace | String name |
//	+-----+-------------+-----------+------------------+-------------+
//	* inside a streamed block only
func (m *TypeMessage) read(c *cursor, d *Decoder) Message {
	m.XID = d.xid(c)
	m.OID = c.u32()
	m.Namespace = c.str()
	m.Name = c.str()
	return m
}
