package decoder

// Form is how a column's value stands in a tuple.
type Form byte

// The forms.
const (
	Null      Form = 'n'
	Unchanged Form = 'u' // a toasted value that an update did not touch; not sent
	Text      Form = 't'
	Binary    Form = 'b'
)

// Value is one column's value. Data aliases the input; it is nil for Null and
// Unchanged, and never nil otherwise.
type Value struct {
	Form Form
	Data []byte
}

// Tuple holds a value for each column of its relation, in the relation's order.
type Tuple []Value

// readTuple reads into dst's memory.
//
//	TupleData
//	+---------+---- for each column -----------------+
//	| Int16 n | Byte1 form | Int32 length | bytes    |
//	+---------+--------------------------------------+
//	            'n' NULL, 'u' unchanged: no length, no bytes
//	            't' text, 'b' binary
//
// The count is checked before anything is allocated: it must be that of the
// relation, since a value is found by its column's place in there.
func readTuple(c *cursor, rel *Relation, dst Tuple) Tuple {
	n := int(c.u16())
	if c.fault != faultNone {
		return dst[:0]
	}
	if n != len(rel.Columns) {
		c.off -= 2
		c.relation = rel
		c.fail(faultColumns, len(rel.Columns), n)
		return dst[:0]
	}
	if cap(dst) < n {
		dst = make(Tuple, n)
	}
	dst = dst[:n]
	for i := range dst {
		v := &dst[i]
		v.Form = Form(c.u8())
		switch v.Form {
		case Text, Binary:
			v.Data = c.bytes(c.u32())
		case Null, Unchanged:
			v.Data = nil
		default:
			c.off--
			c.relation = rel
			c.fail(faultForm, 0, int(v.Form))
			return dst[:0]
		}
	}
	return dst
}
