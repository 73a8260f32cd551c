package decoder

import "math"

// epochShift is from the Unix epoch to Postgres' (2000-01-01), in microseconds.
const epochShift = 946_684_800_000_000

// micros takes a TimestampTz (microseconds since 2000-01-01 UTC) and gives
// microseconds since 1970 UTC.
func (c *cursor) micros() int64 { return unixMicros(int64(c.u64())) }

// unixMicros shifts the epoch. The last thirty years that Postgres can hold do
// not fit 64 bits and become the largest value, as infinity does.
func unixMicros(pg int64) int64 {
	switch {
	case pg == math.MinInt64:
		return pg
	case pg > math.MaxInt64-epochShift:
		return math.MaxInt64
	}
	return pg + epochShift
}
