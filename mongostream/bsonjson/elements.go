package bsonjson

// Elements walks the elements of one document, in its order. Type, Name and Value are
// those of the element that Next found last; both alias the document. Of an embedded
// document or array only the frame has been looked at.
type Elements struct {
	Type  Type
	Name  []byte
	Value []byte

	w         walker
	off, last int
}

// Start begins with doc, one whole BSON document. False: it is none, and Err says why.
func (e *Elements) Start(doc []byte) bool {
	e.w = walker{src: doc}
	e.off, e.last = 4, len(doc)-1
	return e.w.whole(TypeDocument)
}

// Next goes to the next element. False: there is none, or the bytes do not fit and Err says why.
func (e *Elements) Next() bool {
	if e.w.fault != 0 || e.off >= e.last {
		return false
	}
	e.Type = Type(e.w.src[e.off])
	value, ok := e.w.cstring(e.Type, e.off+1, e.last)
	if !ok {
		return false
	}
	next, ok := e.w.span(e.Type, value, e.last)
	if !ok {
		return false
	}
	e.Name = e.w.src[e.off+1 : value-1 : value-1]
	e.Value = e.w.src[value:next:next]
	e.off = next
	return true
}

// Err is nil where the document was walked to its end, else an [*Error].
func (e *Elements) Err() error {
	if e.w.fault == 0 {
		return nil
	}
	return e.w.err()
}
