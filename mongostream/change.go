package mongostream

import (
	"encoding/binary"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// change is one event of a change stream, taken apart. Everything aliases the
// server's answer.
type change struct {
	op    []byte
	token []byte   // hex digits
	id    bson.Raw // the token as the server gave it
	// at is the commit's cluster time, wallMillis its time by the primary's clock
	// (servers before 6.0 do not tell: zero).
	at         bson.Timestamp
	wallMillis int64
	doc        bson.Raw // the inserted document
	lsid       []byte   // nil outside of a transaction
	txn        int64
	to         bson.Raw // the new name, of a rename
}

var errChange = errors.New("a change event that is cut short or lacks its token")

// read takes one event apart in a single pass. What it does not know it passes over.
func (c *change) read(doc []byte) error {
	*c = change{}
	if len(doc) < 5 || int(binary.LittleEndian.Uint32(doc)) != len(doc) {
		return errChange
	}
	b := doc[4 : len(doc)-1]
	for len(b) > 0 {
		kind := bson.Type(b[0])
		n := 1
		for n < len(b) && b[n] != 0 {
			n++
		}
		if n >= len(b) {
			return errChange
		}
		name := b[1:n]
		b = b[n+1:]
		size := valueSize(kind, b)
		if size < 0 || size > len(b) {
			return errChange
		}
		c.take(name, kind, b[:size])
		b = b[size:]
	}
	if len(c.token) == 0 || len(c.op) == 0 {
		return errChange
	}
	return nil
}

func (c *change) take(name []byte, kind bson.Type, v []byte) {
	document := kind == bson.TypeEmbeddedDocument
	switch string(name) {
	case "_id":
		if document {
			c.id, c.token = v, tokenBytes(v)
		}
	case "operationType":
		if kind == bson.TypeString {
			c.op = v[4 : len(v)-1]
		}
	case "clusterTime":
		if kind == bson.TypeTimestamp {
			u := binary.LittleEndian.Uint64(v)
			c.at = bson.Timestamp{T: uint32(u >> 32), I: uint32(u)}
		}
	case "wallTime":
		if kind == bson.TypeDateTime {
			c.wallMillis = int64(binary.LittleEndian.Uint64(v))
		}
	case "fullDocument":
		if document {
			c.doc = v
		}
	case "lsid":
		if document {
			c.lsid = v
		}
	case "txnNumber":
		if kind == bson.TypeInt64 {
			c.txn = int64(binary.LittleEndian.Uint64(v))
		}
	case "to":
		if document {
			c.to = v
		}
	}
}

// micros is the commit time, microseconds since 1970 UTC.
func (c *change) micros() int64 {
	if c.wallMillis != 0 {
		return c.wallMillis * 1000
	}
	return int64(c.at.T) * 1_000_000
}

// valueSize is the size of a value that b begins with; -1: not known or cut short.
func valueSize(kind bson.Type, b []byte) int {
	switch kind {
	case bson.TypeDouble, bson.TypeDateTime, bson.TypeTimestamp, bson.TypeInt64:
		return 8
	case bson.TypeInt32:
		return 4
	case bson.TypeBoolean:
		return 1
	case bson.TypeDecimal128:
		return 16
	case bson.TypeObjectID:
		return 12
	case bson.TypeNull, bson.TypeUndefined, bson.TypeMinKey, bson.TypeMaxKey:
		return 0
	}
	if len(b) < 4 {
		return -1
	}
	n := int(binary.LittleEndian.Uint32(b))
	switch kind {
	case bson.TypeEmbeddedDocument, bson.TypeArray, bson.TypeCodeWithScope:
		if n >= 5 {
			return n
		}
	case bson.TypeString, bson.TypeJavaScript, bson.TypeSymbol:
		if n >= 1 && n <= len(b)-4 {
			return 4 + n
		}
	case bson.TypeBinary:
		if n >= 0 {
			return 5 + n
		}
	case bson.TypeDBPointer:
		if n >= 0 {
			return 4 + n + 12
		}
	}
	return -1 // regular expressions among them: a change event has none
}
