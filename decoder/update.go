package decoder

// OldTuple says what an Update or a Delete tells of the row as it was.
type OldTuple byte

// The sorts of old tuple.
const (
	NoOld   OldTuple = 0
	OldKey  OldTuple = 'K' // the replica identity's columns, NULL in the others
	OldFull OldTuple = 'O' // REPLICA IDENTITY FULL
)

// Update is a changed row. It is decoded so that it can be counted; events are
// made of inserts only.
type Update struct {
	// XID is the (sub)transaction inside a streamed block, else zero.
	XID      uint32
	Relation *Relation
	OldKind  OldTuple
	// Old is empty for NoOld.
	Old Tuple
	// New may hold Unchanged values.
	New Tuple
}

// Kind is KindUpdate.
func (*Update) Kind() Kind { return KindUpdate }

// read reads an Update:
//
//	+-----+-------------+--------------------+-------------------------+-----+-----------+
//	| 'U' | Int32 xid * | Int32 relation oid | 'K' or 'O', TupleData † | 'N' | TupleData |
//	+-----+-------------+--------------------+-------------------------+-----+-----------+
//	* inside a streamed block only
//	† may be missing
func (m *Update) read(c *cursor, d *Decoder) Message {
	m.XID = d.xid(c)
	m.Relation = d.known(c)
	m.OldKind, m.Old = NoOld, m.Old[:0]
	mark := c.u8()
	if mark == byte(OldKey) || mark == byte(OldFull) {
		m.OldKind = OldTuple(mark)
		m.Old = readTuple(c, m.Relation, m.Old)
		mark = c.u8()
	}
	if mark != 'N' {
		c.badTuple(m.Relation, mark)
	}
	m.New = readTuple(c, m.Relation, m.New)
	return m
}
