package slot

import (
	"encoding/binary"
	"io"
)

// boundaryReader never returns bytes beyond the end of the protocol message
// that is being read. With it the client library holds nothing back in its own
// buffer at the moment the connection is taken over from it, and so the pump
// starts with the first frame of the stream.
type boundaryReader struct {
	r    io.Reader
	head [frameHeader]byte
	have int // bytes of head seen
	left int // bytes of the body to come
}

func (b *boundaryReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if b.left > 0 {
		n, err := b.r.Read(p[:min(len(p), b.left)])
		b.left -= n
		return n, err
	}
	n, err := b.r.Read(p[:min(len(p), frameHeader-b.have)])
	b.have += copy(b.head[b.have:], p[:n])
	if b.have == frameHeader {
		b.have = 0
		b.left = int(binary.BigEndian.Uint32(b.head[1:])) - 4
	}
	return n, err
}
