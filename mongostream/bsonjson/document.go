package bsonjson

// maxDepth bounds nesting. Servers accept 100 levels in stored documents (MongoDB
// manual, "Limits and Thresholds") and cannot be set to more than 250.
const maxDepth = 256

// container writes a document or array whose span is known.
func (w *walker) container(dst []byte, t Type, start, end, depth int) ([]byte, bool) {
	if depth > maxDepth {
		return dst, w.fail(FaultDepth, t, start, 0, 0)
	}
	opening, closing := byte('{'), byte('}')
	if t == TypeArray {
		opening, closing = '[', ']'
	}
	dst = append(dst, opening)
	last := end - 1
	for off := start + 4; off < last; {
		inner := Type(w.src[off])
		value, ok := w.cstring(inner, off+1, last)
		if !ok {
			return dst, false
		}
		next, ok := w.span(inner, value, last)
		if !ok {
			return dst, false
		}
		if off > start+4 {
			dst = append(dst, ',')
		}
		if t == TypeDocument { // the names in an array are its indexes
			if dst, ok = w.quote(dst, inner, off+1, value-1); !ok {
				return dst, false
			}
			dst = append(dst, ':')
		}
		if dst, ok = w.value(dst, inner, value, next, depth+1); !ok {
			return dst, false
		}
		off = next
	}
	return append(dst, closing), true
}
