package decoder

import (
	"bytes"
	"encoding/binary"
)

// cursor reads big-endian values off the front of a message. Its first failure
// sticks: from then on every read gives zero, so that the readers of messages are
// straight lines with one check at the end (done).
//
// Invariant: 0 ≤ off ≤ len(src); fault ≠ faultNone ⇒ off = len(src).
type cursor struct {
	src   []byte
	off   int
	fault fault
	at    int // offset of the first failure
	// want and got are the two values that differ; their meaning depends on the fault.
	want, got int
	// relation is the one that the failure is about, if any.
	relation *Relation
}

// fault is why a message was refused.
type fault uint8

const (
	faultNone     fault = iota
	faultShort          // want bytes, got are left
	faultTail           // got bytes are left over
	faultFlags          // got is a flag byte that has no meaning here
	faultTuple          // got is not a byte that may begin a tuple here
	faultForm           // got is not a form of a column value
	faultColumns        // want columns by the relation, got in the tuple
	faultRelation       // got is the id of a relation nobody announced
	faultKind           // got is not a kind
	faultProtocol       // want is the first protocol that has the kind, got is ours
	faultInside         // the kind does not belong between Stream Start and Stream Stop
	faultOutside        // the kind belongs between Stream Start and Stream Stop only
)

func (c *cursor) fail(f fault, want, got int) {
	if c.fault == faultNone {
		c.fault, c.at, c.want, c.got = f, c.off, want, got
	}
	c.off = len(c.src)
}

func (c *cursor) left() int { return len(c.src) - c.off }

func (c *cursor) u8() uint8 {
	if c.left() < 1 {
		c.fail(faultShort, 1, c.left())
		return 0
	}
	v := c.src[c.off]
	c.off++
	return v
}

func (c *cursor) u16() uint16 {
	if c.left() < 2 {
		c.fail(faultShort, 2, c.left())
		return 0
	}
	v := binary.BigEndian.Uint16(c.src[c.off:])
	c.off += 2
	return v
}

func (c *cursor) u32() uint32 {
	if c.left() < 4 {
		c.fail(faultShort, 4, c.left())
		return 0
	}
	v := binary.BigEndian.Uint32(c.src[c.off:])
	c.off += 4
	return v
}

func (c *cursor) u64() uint64 {
	if c.left() < 8 {
		c.fail(faultShort, 8, c.left())
		return 0
	}
	v := binary.BigEndian.Uint64(c.src[c.off:])
	c.off += 8
	return v
}

// bytes takes n bytes without copying them; never nil unless failed. The length
// is compared as 64 bits, so that a negative Int32 on the wire is a failure and
// no surprise.
func (c *cursor) bytes(n uint32) []byte {
	if uint64(n) > uint64(c.left()) {
		c.fail(faultShort, int(n), c.left())
		return nil
	}
	start := c.off
	c.off += int(n)
	return c.src[start:c.off:c.off]
}

// str takes the bytes before the next NUL, and the NUL.
func (c *cursor) str() []byte {
	n := bytes.IndexByte(c.src[c.off:], 0)
	if n < 0 {
		c.fail(faultShort, c.left()+1, c.left())
		return nil
	}
	s := c.bytes(uint32(n))
	c.off++
	return s
}

// unusedFlags takes a flag byte that Postgres reserves; its own reader refuses
// anything but zero (proto.c, "unrecognized flags").
func (c *cursor) unusedFlags() {
	if f := c.u8(); f != 0 {
		c.off--
		c.fail(faultFlags, 0, int(f))
	}
}

// bit takes a byte that is 0 or 1.
func (c *cursor) bit() bool {
	f := c.u8()
	if f > 1 {
		c.off--
		c.fail(faultFlags, 1, int(f))
	}
	return f == 1
}

// done reports whether everything was there and nothing is left.
func (c *cursor) done() bool {
	if c.fault == faultNone && c.left() > 0 {
		c.fail(faultTail, 0, c.left())
	}
	return c.fault == faultNone
}
