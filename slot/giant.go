package slot

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
)

// keepColumn is the largest column that survives in a frame that is too large
// to be held whole: ids, keys and routes do, the payload that made it too large does not.
const keepColumn = 64 << 10

// shrinkGiant reads a frame that is larger than the relay is willing to hold
// and returns a small frame in its place: the same message with its oversized
// values left out (a column as NULL, a logical message's content as nothing),
// and the number of bytes left out. The event can then be named and refused by
// policy, instead of filling the memory. Messages whose values are of no use to
// the relay (updates and deletes) are left out whole: the result is nil.
//
// r yields the frame from its first byte and nothing beyond it; it is read to its end.
func shrinkGiant(r io.Reader) (frame []byte, elided int64, err error) {
	var b bytes.Buffer
	if err := take(r, &b, frameHeader+xlogHeader+1); err != nil {
		return nil, 0, err
	}
	switch kind := b.Bytes()[frameHeader+xlogHeader]; kind {
	case 'I':
		elided, err = shrinkInsert(r, &b)
	case 'M':
		elided, err = shrinkMessage(r, &b)
	case 'U', 'D':
		n, err := io.Copy(io.Discard, r)
		return nil, n, err
	default:
		return nil, 0, fmt.Errorf("a message of kind %q is larger than any of its kind can be", kind)
	}
	if err != nil {
		return nil, 0, err
	}
	out := b.Bytes()
	binary.BigEndian.PutUint32(out[1:], uint32(len(out)-1))
	return out, elided, nil
}

// shrinkInsert: relation int32, 'N', columns int16, then per column a kind byte
// and, for 't' and 'b', int32 length and bytes.
func shrinkInsert(r io.Reader, b *bytes.Buffer) (elided int64, err error) {
	if err := take(r, b, 4+1+2); err != nil {
		return 0, err
	}
	columns := int(binary.BigEndian.Uint16(b.Bytes()[b.Len()-2:]))
	for range columns {
		if err := take(r, b, 1); err != nil {
			return 0, err
		}
		kind := b.Bytes()[b.Len()-1]
		if kind != 't' && kind != 'b' {
			continue
		}
		if err := take(r, b, 4); err != nil {
			return 0, err
		}
		n := int64(binary.BigEndian.Uint32(b.Bytes()[b.Len()-4:]))
		if n <= keepColumn {
			if err := take(r, b, n); err != nil {
				return 0, err
			}
			continue
		}
		b.Truncate(b.Len() - 5)
		b.WriteByte('n')
		if _, err := io.CopyN(io.Discard, r, n); err != nil {
			return 0, err
		}
		elided += n
	}
	_, err = io.Copy(io.Discard, r)
	return elided, err
}

// shrinkMessage: flags byte, LSN int64, prefix and a zero byte, content int32 length and bytes.
func shrinkMessage(r io.Reader, b *bytes.Buffer) (elided int64, err error) {
	if err := take(r, b, 1+8); err != nil {
		return 0, err
	}
	for {
		if err := take(r, b, 1); err != nil {
			return 0, err
		}
		if b.Bytes()[b.Len()-1] == 0 {
			break
		}
		if b.Len() > keepColumn {
			return 0, fmt.Errorf("the prefix of a logical message is longer than %d bytes", keepColumn)
		}
	}
	if err := take(r, b, 4); err != nil {
		return 0, err
	}
	binary.BigEndian.PutUint32(b.Bytes()[b.Len()-4:], 0)
	return io.Copy(io.Discard, r)
}

func take(r io.Reader, b *bytes.Buffer, n int64) error {
	if _, err := io.CopyN(b, r, n); err != nil {
		if err == io.EOF {
			return io.ErrUnexpectedEOF
		}
		return err
	}
	return nil
}

// giant replaces the frame at hand, which is larger than an event may be, by a
// small one that names it.
func (w *wire) giant(ctx context.Context, size int) error {
	head := w.cur.buf[w.parsed:w.cur.n]
	rest := io.LimitReader(readerFunc(func(p []byte) (int, error) {
		for {
			n, err := w.read(p)
			if n > 0 || err != nil {
				return n, err
			}
			if w.s.closing.Load() {
				return 0, net.ErrClosed
			}
		}
	}), int64(size-len(head)))
	small, elided, err := shrinkGiant(io.MultiReader(bytes.NewReader(head), rest))
	if err != nil {
		return err
	}
	w.dropSlab()
	w.parsed = 0
	if small == nil {
		return nil
	}
	if err := w.nextSlab(ctx, len(small)); err != nil || w.cur == nil {
		return err
	}
	w.cur.n = copy(w.cur.buf, small)
	w.parsed = w.cur.n
	if err := w.copyData(w.cur.buf[frameHeader:w.cur.n]); err != nil {
		return w.halt(err)
	}
	return w.handOver(ctx, w.cur.buf[:w.cur.n], elided)
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
