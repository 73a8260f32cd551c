package bsonjson

// Encoder writes BSON in the form that its options say. Its zero value writes the
// plain form. It is never changed, so any number of goroutines may use it.
type Encoder struct{ options Options }

// New gives an encoder with the options.
func New(o Options) *Encoder { return &Encoder{options: o} }

// AppendDocument appends doc, one whole BSON document. The error is an [*Error].
func (e *Encoder) AppendDocument(dst, doc []byte) ([]byte, error) {
	return e.AppendValue(dst, TypeDocument, doc)
}

// AppendValue appends a value, as it lies in a document after type and name. In the
// format BSON these are its own bytes, without the type. The error is an [*Error].
func (e *Encoder) AppendValue(dst []byte, t Type, value []byte) ([]byte, error) {
	w := walker{Options: e.options, src: value}
	if !w.whole(t) {
		return dst, w.err()
	}
	if e.options.Format == BSON {
		if !w.check(t, 0, len(value), 1) {
			return dst, w.err()
		}
		return append(dst, value...), nil
	}
	grown, ok := w.value(dst, t, 0, len(value), 1)
	if !ok {
		return dst, w.err()
	}
	return grown, nil
}

// whole reports whether the source is one value of the type and nothing more.
func (w *walker) whole(t Type) bool {
	next, ok := w.span(t, 0, len(w.src))
	if ok && next != len(w.src) {
		return w.fail(FaultTail, t, next, 0, len(w.src)-next)
	}
	return ok
}
