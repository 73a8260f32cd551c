package slot

import (
	"strconv"

	"github.com/walrelay/walrelay/event"
)

// parser reads the server's text forms and keeps the first error.
type parser struct{ err error }

// lsn reads a position; SQL NULL is zero.
func (p *parser) lsn(s *string) event.LSN {
	if s == nil {
		return 0
	}
	l, err := event.ParseLSN(*s)
	if err != nil && p.err == nil {
		p.err = err
	}
	return l
}

// hex reads the timeline out of a WAL file's name; SQL NULL is zero.
func (p *parser) hex(s *string) int32 {
	if s == nil {
		return 0
	}
	n, err := strconv.ParseInt(*s, 16, 32)
	if err != nil && p.err == nil {
		p.err = err
	}
	return int32(n)
}
