package decoder

// Delete is a row that went away. It is decoded so that it can be counted.
type Delete struct {
	// XID is the (sub)transaction inside a streamed block, else zero.
	XID      uint32
	Relation *Relation
	// OldKind is OldKey or OldFull.
	OldKind OldTuple
	Old     Tuple
}

// Kind is KindDelete.
func (*Delete) Kind() Kind { return KindDelete }

// read reads a Delete:
//
//	+-----+-------------+--------------------+------------+-----------+
//	| 'D' | Int32 xid * | Int32 relation oid | 'K' or 'O' | TupleData |
//	+-----+-------------+--------------------+------------+-----------+
//	* inside a streamed block only
func (m *Delete) read(c *cursor, d *Decoder) Message {
	m.XID = d.xid(c)
	m.Relation = d.known(c)
	mark := c.u8()
	if mark != byte(OldKey) && mark != byte(OldFull) {
		c.badTuple(m.Relation, mark)
	}
	m.OldKind = OldTuple(mark)
	m.Old = readTuple(c, m.Relation, m.Old)
	return m
}
