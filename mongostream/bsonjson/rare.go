package bsonjson

import (
	"bytes"
	"encoding/binary"
	"strconv"
)

// rare writes the types that have no plain form and those that are deprecated.
func (w *walker) rare(dst []byte, t Type, start, end, depth int) ([]byte, bool) {
	src, ok := w.src[start:end], true
	switch t {
	case TypeUndefined:
		if w.Format == Plain {
			return append(dst, "null"...), true
		}
		return append(dst, `{"$undefined":true}`...), true
	case TypeSymbol:
		if w.Format == Plain {
			return w.quote(dst, t, start+4, end-1)
		}
		dst, ok = w.quote(append(dst, `{"$symbol":`...), t, start+4, end-1)
	case TypeCode:
		dst, ok = w.quote(append(dst, `{"$code":`...), t, start+4, end-1)
	case TypeCodeWithScope:
		scope := start + 8 + w.int32(start+4)
		if dst, ok = w.quote(append(dst, `{"$code":`...), t, start+8, scope-1); !ok {
			return dst, false
		}
		dst, ok = w.container(append(dst, `,"$scope":`...), TypeDocument, scope, end, depth+1)
	case TypeRegex:
		options := start + bytes.IndexByte(src, 0) + 1
		if dst, ok = w.quote(append(dst, `{"$regularExpression":{"pattern":`...), t, start, options-1); !ok {
			return dst, false
		}
		dst, ok = w.quote(append(dst, `,"options":`...), t, options, end-1)
		dst = append(dst, '}')
	case TypeDBPointer:
		id := end - 12
		if dst, ok = w.quote(append(dst, `{"$dbPointer":{"$ref":`...), t, start+4, id-1); !ok {
			return dst, false
		}
		dst = append(wrapObjectID(append(dst, `,"$id":`...), w.src[id:end]), "}}"...)
	case TypeTimestamp:
		dst = append(dst, `{"$timestamp":{"t":`...)
		dst = strconv.AppendUint(dst, uint64(binary.LittleEndian.Uint32(src[4:])), 10)
		dst = append(dst, `,"i":`...)
		dst = strconv.AppendUint(dst, uint64(binary.LittleEndian.Uint32(src)), 10)
		dst = append(dst, '}')
	case TypeMinKey:
		dst = append(dst, `{"$minKey":1`...)
	case TypeMaxKey:
		dst = append(dst, `{"$maxKey":1`...)
	}
	return append(dst, '}'), ok
}
