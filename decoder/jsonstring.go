package decoder

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// decodeString gives what a JSON string stands for; raw is its inside, whose
// escapes the scanner has found well formed. Without escapes the result is raw
// itself, else new bytes at the end of scratch.
//
// What cannot be a key, a header or a text value in Postgres is a problem: U+0000,
// half a surrogate pair, bytes that are no UTF-8. (Inside a payload the same is
// left alone: those bytes are not ours.)
func decodeString(raw, scratch []byte) (text, grown []byte, problem string) {
	if !utf8.Valid(raw) {
		return raw, scratch, "is not valid UTF-8"
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw, scratch, ""
	}
	start := len(scratch)
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			scratch = append(scratch, raw[i])
			continue
		}
		i++
		if raw[i] != 'u' {
			scratch = append(scratch, plainEscape(raw[i]))
			continue
		}
		r := hex4(raw[i+1:])
		i += 4
		if utf16.IsSurrogate(r) {
			low := rune(0)
			if i+6 < len(raw) && raw[i+1] == '\\' && raw[i+2] == 'u' {
				low = hex4(raw[i+3:])
			}
			if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
				return raw, scratch[:start], "contains half a surrogate pair"
			}
			i += 6
		}
		if r == 0 {
			return raw, scratch[:start], "contains U+0000"
		}
		scratch = utf8.AppendRune(scratch, r)
	}
	return scratch[start:len(scratch):len(scratch)], scratch, ""
}

func plainEscape(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c // quote, backslash, slash
}

func hex4(b []byte) rune {
	var r rune
	for _, c := range b[:4] {
		r = r<<4 | rune(unhex[c])
	}
	return r
}
