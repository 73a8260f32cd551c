package event

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// LSN is a byte position in the write-ahead log of one Postgres timeline.
// Zero means "none". It prints as Postgres does, for instance 16/B374D848.
type LSN uint64

// ParseLSN reads the text form XXX/XXX (hexadecimal, either half at most 32 bits).
func ParseLSN(s string) (LSN, error) {
	hi, lo, ok := strings.Cut(s, "/")
	if !ok {
		return 0, fmt.Errorf("LSN %q has no slash: want a form like 16/B374D848", s)
	}
	h, err := strconv.ParseUint(hi, 16, 32)
	if err != nil {
		return 0, fmt.Errorf("LSN %q: left half is not a hexadecimal number of 32 bits", s)
	}
	l, err := strconv.ParseUint(lo, 16, 32)
	if err != nil {
		return 0, fmt.Errorf("LSN %q: right half is not a hexadecimal number of 32 bits", s)
	}
	return LSN(h<<32 | l), nil
}

// AppendText appends the text form to dst.
func (l LSN) AppendText(dst []byte) ([]byte, error) { return l.append(dst), nil }

func (l LSN) append(dst []byte) []byte {
	const digits = "0123456789ABCDEF"
	dst = appendHex(dst, uint32(l>>32), digits)
	dst = append(dst, '/')
	return appendHex(dst, uint32(l), digits)
}

func appendHex(dst []byte, v uint32, digits string) []byte {
	var buf [8]byte
	i := len(buf)
	for {
		i--
		buf[i] = digits[v&15]
		v >>= 4
		if v == 0 {
			return append(dst, buf[i:]...)
		}
	}
}

func (l LSN) String() string { return string(l.append(make([]byte, 0, 17))) }

// Sub is the number of bytes of log between an earlier position and l; zero
// when earlier is not earlier.
func (l LSN) Sub(earlier LSN) uint64 {
	if l <= earlier {
		return 0
	}
	return uint64(l - earlier)
}

// Position is a place in one source's log at which reading can be taken up
// again. For Postgres it is the end LSN of a commit (or of the log where
// nothing was pending) and nothing else; for Mongo it is a resume token.
// Positions of different sources, or of different timelines, are not
// comparable. The zero value means "none".
type Position struct {
	LSN   LSN
	Token string
}

// AtLSN is the position of a commit's end in a Postgres log.
func AtLSN(l LSN) Position { return Position{LSN: l} }

// AtToken is the position named by a Mongo resume token; tokens compare bytewise.
func AtToken(t string) Position { return Position{Token: t} }

// Compare orders two positions of one source: -1, 0 or +1.
func (p Position) Compare(q Position) int {
	if c := cmp.Compare(p.LSN, q.LSN); c != 0 {
		return c
	}
	return strings.Compare(p.Token, q.Token)
}

// IsZero reports whether there is no position.
func (p Position) IsZero() bool { return p == Position{} }

func (p Position) String() string {
	if p.Token != "" {
		return p.Token
	}
	return p.LSN.String()
}
