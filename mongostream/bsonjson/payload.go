package bsonjson

// Payload gives what to publish for a value that is an event's payload. scratch is
// what the caller gives room in; grown is it again, with what had to be written
// appended.
//
//   - A string is already encoded, by whom only the writer knows: its bytes as they
//     are, without a content type.
//   - Binary likewise.
//   - Null and undefined are a nil payload. On a compacted topic that deletes the
//     key, so the caller has to decide about it.
//   - A document or array is written in the encoder's format. In the format BSON
//     it is a part of value.
//   - Anything else is written likewise; in the format BSON, where it has no form of
//     its own, as relaxed Extended JSON.
//
// The error is an [*Error].
func (e *Encoder) Payload(scratch []byte, t Type, value []byte) (payload, grown []byte, contentType string, err error) {
	w := walker{Options: e.options, src: value}
	if !w.whole(t) {
		return nil, scratch, "", w.err()
	}
	format := e.options.Format
	switch t {
	case TypeString:
		n := len(value) - 1
		return value[4:n:n], scratch, "", nil
	case TypeBinary:
		_, data := w.binaryData(0, len(value))
		return data, scratch, "", nil
	case TypeNull, TypeUndefined:
		return nil, scratch, "", nil
	case TypeDocument, TypeArray:
		if format == BSON {
			if !w.check(t, 0, len(value), 1) {
				return nil, scratch, "", w.err()
			}
			return value[:len(value):len(value)], scratch, format.ContentType(), nil
		}
	}
	if format == BSON {
		format = Relaxed
		w.Format = format
	}
	start := len(scratch)
	grown, ok := w.value(scratch, t, 0, len(value), 1)
	if !ok {
		return nil, scratch, "", w.err()
	}
	return grown[start:len(grown):len(grown)], grown, format.ContentType(), nil
}

// AppendText appends a value as the text of a header or a key: the plain form
// without quotes, whatever the encoder's format, since a wrapped ObjectId is of no use there.
// A string is appended as it is, null and undefined as nothing. The error is an [*Error].
func (e *Encoder) AppendText(dst []byte, t Type, value []byte) ([]byte, error) {
	w := walker{Options: e.options, src: value}
	w.Format = Plain
	if !w.whole(t) {
		return dst, w.err()
	}
	switch t {
	case TypeString, TypeSymbol:
		return append(dst, value[4:len(value)-1]...), nil
	case TypeNull, TypeUndefined:
		return dst, nil
	}
	start := len(dst)
	grown, ok := w.value(dst, t, 0, len(value), 1)
	if !ok {
		return dst, w.err()
	}
	// Only scalars begin with a quote, and none of those holds anything to unescape.
	if grown[start] == '"' {
		copy(grown[start:], grown[start+1:])
		grown = grown[:len(grown)-2]
	}
	return grown, nil
}
