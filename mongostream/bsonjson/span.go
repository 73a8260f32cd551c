package bsonjson

import (
	"bytes"
	"encoding/binary"
)

// walker reads one piece of BSON. Its readers return false at the first byte that
// does not fit, and leave here what and where.
type walker struct {
	Options
	src []byte

	fault     Fault
	kind      Type
	at        int
	want, got int
}

func (w *walker) fail(f Fault, t Type, at, want, got int) bool {
	w.fault, w.kind, w.at, w.want, w.got = f, t, at, want, got
	return false
}

func (w *walker) int32(off int) int { return int(int32(binary.LittleEndian.Uint32(w.src[off:]))) }

// span finds where a value of the type, which begins at off, ends. The value is
// then known to have its form and to end no later than end; of documents and arrays
// only the frame is known.
//
//	double, date, timestamp, int64   8 bytes, little endian
//	int32                            4 bytes, little endian
//	Decimal128                       16 bytes, little endian
//	ObjectId                         12 bytes
//	bool                             1 byte, 0 or 1
//	null, undefined, MinKey, MaxKey  nothing
//	string, code, symbol             int32 length with the zero, bytes, zero
//	document, array                  int32 length of all, elements, zero
//	binary                           int32 length, subtype, bytes; in subtype 2 these are int32 length, bytes
//	regex                            bytes, zero (pattern), bytes, zero (options)
//	DBPointer                        string, ObjectId
//	code with scope                  int32 length of all, string, document
func (w *walker) span(t Type, off, end int) (next int, ok bool) {
	switch t {
	case TypeDouble, TypeDate, TypeTimestamp, TypeInt64:
		return w.fixed(t, off, end, 8)
	case TypeInt32:
		return w.fixed(t, off, end, 4)
	case TypeString, TypeCode, TypeSymbol:
		return w.str(t, off, end)
	case TypeDocument, TypeArray:
		return w.frame(t, off, end)
	case TypeNull, TypeUndefined, TypeMinKey, TypeMaxKey:
		return off, true
	case TypeBool:
		next, ok = w.fixed(t, off, end, 1)
		if ok && w.src[off] > 1 {
			return off, w.fail(FaultBool, t, off, 1, int(w.src[off]))
		}
		return next, ok
	case TypeObjectID:
		return w.fixed(t, off, end, 12)
	case TypeDecimal128:
		return w.fixed(t, off, end, 16)
	case TypeBinary:
		return w.binary(off, end)
	case TypeRegex:
		if next, ok = w.cstring(t, off, end); !ok {
			return off, false
		}
		return w.cstring(t, next, end)
	case TypeDBPointer:
		if next, ok = w.str(t, off, end); !ok {
			return off, false
		}
		return w.fixed(t, next, end, 12)
	case TypeCodeWithScope:
		return w.codeWithScope(off, end)
	}
	return off, w.fail(FaultType, t, off, 0, 0)
}

func (w *walker) fixed(t Type, off, end, n int) (next int, ok bool) {
	if end-off < n {
		return off, w.fail(FaultShort, t, off, n, end-off)
	}
	return off + n, true
}

// counted reads a length of at least least, which counts extra bytes less than what follows it.
func (w *walker) counted(t Type, off, end, least, extra int) (next int, ok bool) {
	if end-off < 4 {
		return off, w.fail(FaultShort, t, off, 4, end-off)
	}
	n := w.int32(off)
	if n < least {
		return off, w.fail(FaultLength, t, off, least, n)
	}
	if n > end-off-4-extra {
		return off, w.fail(FaultShort, t, off, 4+n+extra, end-off)
	}
	return off + 4 + n + extra, true
}

func (w *walker) str(t Type, off, end int) (next int, ok bool) {
	next, ok = w.counted(t, off, end, 1, 0)
	if ok && w.src[next-1] != 0 {
		return off, w.fail(FaultTerminator, t, next-1, 0, 0)
	}
	return next, ok
}

func (w *walker) frame(t Type, off, end int) (next int, ok bool) {
	next, ok = w.counted(t, off, end, 5, -4)
	if ok && w.src[next-1] != 0 {
		return off, w.fail(FaultTerminator, t, next-1, 0, 0)
	}
	return next, ok
}

func (w *walker) cstring(t Type, off, end int) (next int, ok bool) {
	n := bytes.IndexByte(w.src[off:end], 0)
	if n < 0 {
		return off, w.fail(FaultTerminator, t, off, 0, 0)
	}
	return off + n + 1, true
}

func (w *walker) binary(off, end int) (next int, ok bool) {
	next, ok = w.counted(TypeBinary, off, end, 0, 1)
	if !ok || w.src[off+4] != subtypeOld {
		return next, ok
	}
	inner, ok := w.counted(TypeBinary, off+5, next, 0, 0)
	if ok && inner != next {
		return off, w.fail(FaultTail, TypeBinary, inner, 0, next-inner)
	}
	return inner, ok
}

func (w *walker) codeWithScope(off, end int) (next int, ok bool) {
	const least = 4 + 5 + 5 // the length itself, an empty string, an empty document
	if next, ok = w.counted(TypeCodeWithScope, off, end, least, -4); !ok {
		return off, false
	}
	scope, ok := w.str(TypeCodeWithScope, off+4, next)
	if !ok {
		return off, false
	}
	inner, ok := w.frame(TypeDocument, scope, next)
	if ok && inner != next {
		return off, w.fail(FaultTail, TypeCodeWithScope, inner, 0, next-inner)
	}
	return inner, ok
}
