package decoder

// decodeBytea decodes the text form of a bytea into the memory that it stands in,
// which is always large enough. Both forms of bytea_output are read; they cannot
// be confused, since the escape form doubles every backslash.
//
//	hex     \x00ff…
//	escape  abc\\\000   (backslash doubled, other bytes in three octal digits)
func decodeBytea(b []byte) ([]byte, bool) {
	if len(b) >= 2 && b[0] == '\\' && b[1] == 'x' {
		return decodeHex(b)
	}
	w := 0
	for r := 0; r < len(b); w++ {
		switch {
		case b[r] != '\\':
			b[w] = b[r]
			r++
		case r+1 < len(b) && b[r+1] == '\\':
			b[w] = '\\'
			r += 2
		case r+3 < len(b) && isOctal(b[r+1]) && b[r+1] <= '3' && isOctal(b[r+2]) && isOctal(b[r+3]):
			b[w] = (b[r+1]-'0')<<6 | (b[r+2]-'0')<<3 | (b[r+3] - '0')
			r += 4
		default:
			return nil, false
		}
	}
	return b[:w:w], true
}

func isOctal(c byte) bool { return c >= '0' && c <= '7' }

func decodeHex(b []byte) ([]byte, bool) {
	digits := b[2:]
	if len(digits)%2 != 0 {
		return nil, false
	}
	n := len(digits) / 2
	for i := range n {
		hi, lo := unhex[digits[2*i]], unhex[digits[2*i+1]]
		if hi|lo > 15 {
			return nil, false
		}
		b[i] = hi<<4 | lo
	}
	return b[:n:n], true
}

// unhex gives a digit's value, and 255 for what is none.
var unhex = func() (t [256]byte) {
	for i := range t {
		t[i] = 255
	}
	for i := range 10 {
		t['0'+i] = byte(i)
	}
	for i := range 6 {
		t['a'+i], t['A'+i] = byte(10+i), byte(10+i)
	}
	return t
}()
