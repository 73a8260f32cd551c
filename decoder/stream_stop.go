package decoder

// StreamStop closes the open block. Nothing in it is committed yet.
type StreamStop struct{}

// Kind is KindStreamStop.
func (*StreamStop) Kind() Kind { return KindStreamStop }

// read reads a Stream Stop, which is its kind byte alone:
//
//	+-----+
//	| 'E' |
//	+-----+
func (m *StreamStop) read(d *Decoder) Message {
	d.inStream = false
	return m
}
