package hlc

import (
	"fmt"
	"strconv"
	"strings"
)

// MaxLogical is the largest value of the logical part.
const MaxLogical = 1<<16 - 1

// MaxPhysical is the largest physical time in milliseconds that keeps a packed
// stamp positive as a signed 64-bit integer (year 6429).
const MaxPhysical = 1<<47 - 1

// Stamp is a packed Hybrid Logical Clock value: compare stamps as the integers that
// they are. The zero value sorts before all others, and no clock issues it.
type Stamp uint64

// Pack makes a stamp of milliseconds since 1970 UTC and a logical counter, or
// says which of them is out of range.
func Pack(physicalMillis, logical int64) (Stamp, error) {
	if physicalMillis < 0 || physicalMillis > MaxPhysical {
		return 0, fmt.Errorf("physical part %d is outside 0…%d ms", physicalMillis, int64(MaxPhysical))
	}
	if logical < 0 || logical > MaxLogical {
		return 0, fmt.Errorf("logical part %d is outside 0…%d", logical, MaxLogical)
	}
	return Stamp(physicalMillis<<16 | logical), nil
}

// PhysicalMillis is the physical part, milliseconds since 1970 UTC.
func (s Stamp) PhysicalMillis() int64 { return int64(s >> 16) }

// Logical is the counter among stamps of one millisecond.
func (s Stamp) Logical() uint16 { return uint16(s) }

// TextLen is the length of the text form.
const TextLen = 15 + 1 + 5

// AppendText appends the text form, for instance 001700000000000.00003. It never
// fails; the error makes it an encoding.TextAppender.
func (s Stamp) AppendText(dst []byte) ([]byte, error) {
	dst = appendPadded(dst, uint64(s.PhysicalMillis()), 15)
	dst = append(dst, '.')
	return appendPadded(dst, uint64(s.Logical()), 5), nil
}

func appendPadded(dst []byte, v uint64, width int) []byte {
	start := len(dst)
	for range width {
		dst = append(dst, '0')
	}
	for i := start + width - 1; i >= start && v > 0; i-- {
		dst[i] = byte('0' + v%10)
		v /= 10
	}
	return dst
}

// String is the text form: what the header forze_hlc carries.
func (s Stamp) String() string {
	b, _ := s.AppendText(make([]byte, 0, TextLen))
	return string(b)
}

// Parse reads the text form; unpadded decimals are accepted. What has no dot, is no
// decimal number or is out of range is an error, and so is never a stamp by accident.
func Parse(text string) (Stamp, error) {
	p, l, ok := strings.Cut(text, ".")
	if !ok {
		return 0, fmt.Errorf("stamp %q has no dot: want a form like 001700000000000.00003", text)
	}
	physical, err := strconv.ParseUint(p, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("stamp %q: physical part is not a decimal number", text)
	}
	logical, err := strconv.ParseUint(l, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("stamp %q: logical part is not a decimal number", text)
	}
	return Pack(int64(physical), int64(logical))
}

// ParsePacked reads the decimal digits of a packed stamp, as a bigint column prints
// it; anything but digits, and more than a bigint holds, is an error.
func ParsePacked(digits []byte) (Stamp, error) {
	if len(digits) == 0 || len(digits) > 19 {
		return 0, fmt.Errorf("packed stamp %q is not a positive 64-bit integer", digits)
	}
	var v uint64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, fmt.Errorf("packed stamp %q is not a positive 64-bit integer", digits)
		}
		v = v*10 + uint64(c-'0')
	}
	if v > 1<<63-1 {
		return 0, fmt.Errorf("packed stamp %q is not a positive 64-bit integer", digits)
	}
	return Stamp(v), nil
}
