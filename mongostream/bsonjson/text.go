package bsonjson

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

const (
	ones  = 0x0101010101010101
	highs = 0x80 * ones
)

// special has the highest bit of a byte set where eight bytes hold a control
// character, a quote, a backslash or the begin of something beyond ASCII. The
// lowest bit set is right; those above may be wrong, since subtractions borrow.
func special(x uint64) uint64 {
	quote, slash := x^'"'*ones, x^'\\'*ones
	return (x | (x-0x20*ones)&^x | (quote-ones)&^quote | (slash-ones)&^slash) & highs
}

// quote writes the bytes from..to of the source as a JSON string.
func (w *walker) quote(dst []byte, t Type, from, to int) ([]byte, bool) {
	s := w.src[from:to]
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		// Most bytes need nothing: eight at a time.
		if i+8 <= len(s) {
			found := special(binary.LittleEndian.Uint64(s[i:]))
			if found == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(found) / 8
		}
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRune(s[i:])
			if r != utf8.RuneError || n > 1 {
				i += n
				continue
			}
			if w.InvalidText == InvalidPoison {
				return dst, w.fail(FaultText, t, from+i, 0, 0)
			}
			dst = append(append(dst, s[start:i]...), string(utf8.RuneError)...)
		} else if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		} else {
			dst = escape(append(dst, s[start:i]...), c)
		}
		i++
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"'), true
}

func escape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	const digits = "0123456789abcdef"
	return append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
}
