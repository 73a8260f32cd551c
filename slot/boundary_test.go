package slot

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

func frame(kind byte, body []byte) []byte {
	b := binary.BigEndian.AppendUint32([]byte{kind}, uint32(4+len(body)))
	return append(b, body...)
}

func TestBoundaryReaderNeverReadsBeyondTheMessageAtHand(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var wire []byte
		ends := map[int]bool{0: true}
		for _, body := range rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 40), 1, 8).Draw(t, "bodies") {
			wire = append(wire, frame('d', body)...)
			ends[len(wire)] = true
		}
		under := bytes.NewReader(wire)
		var src io.Reader = under
		if rapid.Bool().Draw(t, "one byte at a time") {
			src = iotest.OneByteReader(under)
		}
		r := &boundaryReader{r: src}
		var got []byte
		for len(got) < len(wire) {
			buf := make([]byte, rapid.IntRange(1, 64).Draw(t, "buffer"))
			before := len(got)
			n, err := r.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, buf[:n]...)
			for at := before + 1; at < len(got); at++ {
				if ends[at] {
					t.Fatalf("one read went from %d to %d, across the message's end at %d", before, len(got), at)
				}
			}
			if taken := len(wire) - under.Len(); taken != len(got) {
				t.Fatalf("%d bytes taken from the connection, %d given out", taken, len(got))
			}
		}
		if !bytes.Equal(got, wire) {
			t.Fatal("other bytes came out than went in")
		}
	})
}
