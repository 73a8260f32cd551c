package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes. It is written as 16MiB (binary units), 1MB
// (decimal units), or as plain bytes.
type Size int64

// Longest suffixes first, since B ends them all; for printing, the binary ones
// from the largest.
var sizeUnits = []struct {
	suffix string
	bytes  int64
}{
	{"GiB", 1 << 30},
	{"MiB", 1 << 20},
	{"KiB", 1 << 10},
	{"GB", 1e9},
	{"MB", 1e6},
	{"KB", 1e3},
	{"kB", 1e3},
	{"B", 1},
}

// ParseSize reads a size.
func ParseSize(text string) (Size, error) {
	digits, unit := text, int64(1)
	for _, u := range sizeUnits {
		if rest, ok := strings.CutSuffix(text, u.suffix); ok {
			digits, unit = strings.TrimRight(rest, " "), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, errors.New("want " + Size(0).want())
	}
	if n > math.MaxInt64/unit || n < math.MinInt64/unit {
		return 0, fmt.Errorf("more bytes than can be counted: the most is %d", int64(math.MaxInt64))
	}
	return Size(n * unit), nil
}

func (s *Size) parse(text string) (err error) {
	*s, err = ParseSize(text)
	return err
}

func (Size) want() string { return "a size such as 16MiB, 1MB or 65536" }

// String is the size in the largest binary unit that divides it.
func (s Size) String() string {
	for _, u := range sizeUnits[:3] {
		if s != 0 && int64(s)%u.bytes == 0 {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(s), 10)
}
