package decoder

// maxDepth bounds the nesting of arrays and objects. Postgres' own parser stops
// at its stack's depth, a few thousand levels.
const maxDepth = 10_000

// scanner walks a JSON text (RFC 8259, strictly) and finds where values begin and
// end. It decodes nothing, so bytes stay as they are; it does not recurse, so
// depth costs one bit.
//
// Its readers return false at the first byte that does not fit; off is then that
// byte's offset.
type scanner struct {
	src []byte
	off int
	// stack has a bit for each open bracket: set for an object.
	stack [maxDepth/64 + 1]uint64
}

func (s *scanner) reset(src []byte) { s.src, s.off = src, 0 }

// peek skips white space and gives the next byte; zero at the end.
func (s *scanner) peek() byte {
	for ; s.off < len(s.src); s.off++ {
		switch c := s.src[s.off]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// take skips white space and takes one byte that must be c.
func (s *scanner) take(c byte) bool {
	if s.peek() != c || s.off == len(s.src) {
		return false
	}
	s.off++
	return true
}

// atEnd reports whether nothing but white space is left.
func (s *scanner) atEnd() bool { s.peek(); return s.off == len(s.src) }

// key steps to the next member of an object whose brace was taken: it takes the
// comma, the name and the colon. name is without its quotes, escapes untouched.
// more is false when the closing brace was taken instead.
func (s *scanner) key(isFirst bool) (name []byte, more, ok bool) {
	if s.peek() == '}' {
		s.off++
		return nil, false, true
	}
	if !isFirst && !s.take(',') {
		return nil, false, false
	}
	s.peek()
	start := s.off
	if !s.str() {
		return nil, false, false
	}
	name = s.src[start+1 : s.off-1]
	return name, true, s.take(':')
}

// value takes one value and gives its bytes, without the white space around it.
func (s *scanner) value() (span []byte, ok bool) {
	s.peek()
	start := s.off
	depth := 0
	for {
		opened, ok := s.scalarOrOpen(&depth)
		if !ok {
			return nil, false
		}
		if opened {
			continue
		}
		// A value has ended: close what closes after it, up to the next value.
		for {
			if depth == 0 {
				return s.src[start:s.off:s.off], true
			}
			object := s.isObject(depth)
			c := s.peek()
			if object && c == '}' || !object && c == ']' {
				s.off++
				depth--
				continue
			}
			if !s.take(',') || object && !s.member() {
				return nil, false
			}
			break
		}
	}
}

// scalarOrOpen takes a scalar or an empty bracket pair, or opens a bracket up to
// its first value.
func (s *scanner) scalarOrOpen(depth *int) (opened, ok bool) {
	switch c := s.peek(); c {
	case '{', '[':
		if *depth == maxDepth {
			return false, false
		}
		s.off++
		if next := s.peek(); next == c+2 { // '{'+2 is '}', '['+2 is ']'
			s.off++
			return false, true
		}
		*depth++
		s.push(*depth, c == '{')
		return true, c == '[' || s.member()
	case '"':
		return false, s.str()
	case 't':
		return false, s.word("true")
	case 'f':
		return false, s.word("false")
	case 'n':
		return false, s.word("null")
	default:
		return false, s.number()
	}
}

// member takes a name and its colon.
func (s *scanner) member() bool {
	s.peek()
	return s.str() && s.take(':')
}

func (s *scanner) push(depth int, object bool) {
	word, bit := &s.stack[depth/64], uint64(1)<<(depth%64)
	if object {
		*word |= bit
	} else {
		*word &^= bit
	}
}

func (s *scanner) isObject(depth int) bool { return s.stack[depth/64]&(1<<(depth%64)) != 0 }

// str takes a string with its quotes. It checks that escapes are well formed, not
// what they stand for.
func (s *scanner) str() bool {
	if s.off >= len(s.src) || s.src[s.off] != '"' {
		return false
	}
	for s.off++; ; s.off++ {
		// Most bytes are plain; the loop over them stays in registers.
		src, i := s.src, s.off
		for i < len(src) && src[i] >= ' ' && src[i] != '"' && src[i] != '\\' {
			i++
		}
		s.off = i
		switch {
		case i == len(src):
			return false
		case src[i] == '"':
			s.off++
			return true
		case src[i] != '\\' || !s.escape():
			return false
		}
	}
}

// escape steps onto the last byte of an escape sequence.
func (s *scanner) escape() bool {
	s.off++
	if s.off >= len(s.src) {
		return false
	}
	switch s.src[s.off] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		for range 4 {
			s.off++
			if s.off >= len(s.src) || unhex[s.src[s.off]] > 15 {
				return false
			}
		}
		return true
	}
	return false
}

func (s *scanner) word(w string) bool {
	for i := range len(w) {
		if s.off >= len(s.src) || s.src[s.off] != w[i] {
			return false
		}
		s.off++
	}
	return true
}

// number takes  -? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?
func (s *scanner) number() bool {
	s.skip('-')
	if !s.skip('0') && !s.digits() {
		return false
	}
	if s.skip('.') && !s.digits() {
		return false
	}
	if s.skip('e') || s.skip('E') {
		if !s.skip('+') {
			s.skip('-')
		}
		return s.digits()
	}
	return true
}

func (s *scanner) skip(c byte) bool {
	if s.off < len(s.src) && s.src[s.off] == c {
		s.off++
		return true
	}
	return false
}

func (s *scanner) digits() bool {
	start := s.off
	for s.off < len(s.src) && s.src[s.off] >= '0' && s.src[s.off] <= '9' {
		s.off++
	}
	return s.off > start
}
