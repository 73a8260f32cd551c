package slot

import (
	"bytes"
	"encoding/binary"
	"testing"
	"testing/iotest"

	"github.com/walrelay/walrelay/decoder"
)

func xlog(message []byte) []byte {
	b := make([]byte, xlogHeader)
	b[0] = kindXLogData
	return frame(msgCopyData, append(b, message...))
}

func column(kind byte, value []byte) []byte {
	if kind == 'n' || kind == 'u' {
		return []byte{kind}
	}
	return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(value))), value...)
}

func insertMessage(columns ...[]byte) []byte {
	b := binary.BigEndian.AppendUint32([]byte{'I'}, 7)
	b = binary.BigEndian.AppendUint16(append(b, 'N'), uint16(len(columns)))
	for _, c := range columns {
		b = append(b, c...)
	}
	return b
}

func relationMessage(columns int) []byte {
	b := binary.BigEndian.AppendUint32([]byte{'R'}, 7)
	b = append(b, "public\x00outbox\x00d"...)
	b = binary.BigEndian.AppendUint16(b, uint16(columns))
	for i := range columns {
		b = append(append(b, 0, byte('a'+i), 0), 0, 0, 0, 25, 255, 255, 255, 255)
	}
	return b
}

func TestGiantRowKeepsItsSmallColumnsAndItsSize(t *testing.T) {
	t.Parallel()
	giant := bytes.Repeat([]byte("x"), 3<<20)
	for name, payload := range map[string][]byte{
		"in the middle": insertMessage(column('t', []byte("id")), column('t', giant), column('n', nil), column('t', []byte("key"))),
		"binary form":   insertMessage(column('b', []byte("id")), column('b', giant), column('n', nil), column('b', []byte("key"))),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			small, elided, err := shrinkGiant(iotest.HalfReader(bytes.NewReader(xlog(payload))))
			if err != nil {
				t.Fatal(err)
			}
			if elided != int64(len(giant)) {
				t.Errorf("%d bytes left out, want %d", elided, len(giant))
			}
			if size, err := frameSize(small); err != nil || size != len(small) {
				t.Fatalf("frame says %d bytes (%v), has %d", size, err, len(small))
			}
			d := decoder.New(decoder.Options{Protocol: 1})
			if _, err := d.Decode(relationMessage(4), 0); err != nil {
				t.Fatal(err)
			}
			m, err := d.Decode(small[frameHeader+xlogHeader:], 0)
			if err != nil {
				t.Fatal(err)
			}
			row := m.(*decoder.Insert).New
			if string(row[0].Data) != "id" || row[1].Form != decoder.Null || string(row[3].Data) != "key" {
				t.Errorf("row %v, want id, NULL, NULL, key", row)
			}
		})
	}
}

func TestGiantMessageKeepsItsPrefix(t *testing.T) {
	t.Parallel()
	m := append([]byte{'M', 1}, make([]byte, 8)...)
	m = append(m, "outbox/orders\x00"...)
	m = binary.BigEndian.AppendUint32(m, 5<<20)
	m = append(m, make([]byte, 5<<20)...)
	small, elided, err := shrinkGiant(bytes.NewReader(xlog(m)))
	if err != nil || elided != 5<<20 {
		t.Fatalf("%d bytes left out, %v", elided, err)
	}
	got, err := decoder.New(decoder.Options{}).Decode(small[frameHeader+xlogHeader:], 0)
	if err != nil {
		t.Fatal(err)
	}
	if lm := got.(*decoder.LogicalMessage); string(lm.Prefix) != "outbox/orders" || len(lm.Content) != 0 {
		t.Errorf("prefix %q with %d bytes of content, want outbox/orders with none", lm.Prefix, len(lm.Content))
	}
}

func TestGiantUpdateIsLeftOutWhole(t *testing.T) {
	t.Parallel()
	src := bytes.NewReader(xlog(append([]byte{'U'}, make([]byte, 1<<20)...)))
	small, _, err := shrinkGiant(src)
	if err != nil || small != nil || src.Len() != 0 {
		t.Fatalf("%d bytes kept, %d not read, %v; want nothing kept and all read", len(small), src.Len(), err)
	}
}

func TestTruncatedGiantIsAnErrorAtEveryLength(t *testing.T) {
	t.Parallel()
	whole := xlog(insertMessage(column('t', []byte("id")), column('t', bytes.Repeat([]byte("x"), keepColumn+10)), column('n', nil)))
	for n := range len(whole) {
		if n > 200 && n < len(whole)-200 && n%997 != 0 {
			continue // the inside of the payload is all alike
		}
		small, _, err := shrinkGiant(bytes.NewReader(whole[:n]))
		if err == nil {
			t.Fatalf("a frame cut after %d of %d bytes gave %d bytes and no error", n, len(whole), len(small))
		}
	}
}
