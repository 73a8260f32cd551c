package bsonjson

// check walks a value whose span is known, and writes nothing.
func (w *walker) check(t Type, start, end, depth int) bool {
	switch t {
	case TypeDocument, TypeArray:
	case TypeCodeWithScope:
		// The string inside was looked at when the span was taken.
		scope := start + 8 + w.int32(start+4)
		return w.check(TypeDocument, scope, end, depth+1)
	default:
		return true
	}
	if depth > maxDepth {
		return w.fail(FaultDepth, t, start, 0, 0)
	}
	for off, last := start+4, end-1; off < last; {
		inner := Type(w.src[off])
		value, ok := w.cstring(inner, off+1, last)
		if !ok {
			return false
		}
		next, ok := w.span(inner, value, last)
		if !ok || !w.check(inner, value, next, depth+1) {
			return false
		}
		off = next
	}
	return true
}
