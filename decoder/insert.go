package decoder

// Insert is one new row.
type Insert struct {
	// XID is the (sub)transaction inside a streamed block, else zero.
	XID      uint32
	Relation *Relation
	// New has one value for each column of Relation.
	New Tuple
}

// Kind is KindInsert.
func (*Insert) Kind() Kind { return KindInsert }

// read reads an Insert:
//
//	+-----+-------------+--------------------+-----+-----------+
//	| 'I' | Int32 xid * | Int32 relation oid | 'N' | TupleData |
//	+-----+-------------+--------------------+-----+-----------+
//	* inside a streamed block only
func (m *Insert) read(c *cursor, d *Decoder) Message {
	m.XID = d.xid(c)
	m.Relation = d.known(c)
	if mark := c.u8(); mark != 'N' {
		c.badTuple(m.Relation, mark)
	}
	m.New = readTuple(c, m.Relation, m.New)
	return m
}

// badTuple refuses the tuple mark that was just read.
func (c *cursor) badTuple(rel *Relation, mark uint8) {
	if c.fault != faultNone {
		return
	}
	c.off--
	c.relation = rel
	c.fail(faultTuple, 0, int(mark))
}
