package bsonjson

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"
)

// value writes a value whose span is known.
func (w *walker) value(dst []byte, t Type, start, end, depth int) ([]byte, bool) {
	src := w.src[start:end]
	switch t {
	case TypeString:
		return w.quote(dst, t, start+4, end-1)
	case TypeDocument, TypeArray:
		return w.container(dst, t, start, end, depth)
	case TypeInt32:
		i := int64(int32(binary.LittleEndian.Uint32(src)))
		if w.Format == Canonical {
			return wrapInt(dst, `{"$numberInt":"`, i), true
		}
		return strconv.AppendInt(dst, i, 10), true
	case TypeInt64:
		return w.int64(dst, int64(binary.LittleEndian.Uint64(src))), true
	case TypeDouble:
		return w.double(dst, math.Float64frombits(binary.LittleEndian.Uint64(src)), start)
	case TypeBool:
		return strconv.AppendBool(dst, src[0] == 1), true
	case TypeNull:
		return append(dst, "null"...), true
	case TypeObjectID:
		return w.objectID(dst, src), true
	case TypeDate:
		return w.date(dst, int64(binary.LittleEndian.Uint64(src))), true
	case TypeBinary:
		return w.appendBinary(dst, start, end), true
	case TypeDecimal128:
		return w.decimal(dst, start)
	}
	return w.rare(dst, t, start, end, depth)
}

func (w *walker) int64(dst []byte, i int64) []byte {
	switch {
	case w.Format == Canonical:
		return wrapInt(dst, `{"$numberLong":"`, i)
	case w.Format == Plain && w.Int64Text:
		dst = strconv.AppendInt(append(dst, '"'), i, 10)
		return append(dst, '"')
	}
	return strconv.AppendInt(dst, i, 10)
}

func wrapInt(dst []byte, head string, i int64) []byte {
	dst = strconv.AppendInt(append(dst, head...), i, 10)
	return append(dst, `"}`...)
}

func (w *walker) objectID(dst, id []byte) []byte {
	if w.Format != Plain {
		return append(wrapObjectID(dst, id), '}')
	}
	dst = hex.AppendEncode(append(dst, '"'), id)
	return append(dst, '"')
}

// wrapObjectID leaves the brace open.
func wrapObjectID(dst, id []byte) []byte {
	dst = hex.AppendEncode(append(dst, `{"$oid":"`...), id)
	return append(dst, '"')
}
