package document

import (
	"strconv"
	"time"
)

// appendTimestamp writes milliseconds since 1970 as Postgres prints a timestamptz in UTC
// with DateStyle ISO: no more digits of the second than it has, years before our era with BC.
//
//	2026-08-21 10:15:00.12+00    2026-08-21 10:15:00+00    0044-03-15 12:00:00+00 BC
func appendTimestamp(dst []byte, ms int64) []byte {
	t := time.UnixMilli(ms).UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	before := year < 1 // there is no year 0
	if before {
		year = 1 - year
	}
	for limit := 1000; year < limit && limit > 1; limit /= 10 {
		dst = append(dst, '0')
	}
	dst = strconv.AppendInt(dst, int64(year), 10)
	dst = pad2(append(dst, '-'), int(month))
	dst = pad2(append(dst, '-'), day)
	dst = pad2(append(dst, ' '), hour)
	dst = pad2(append(dst, ':'), minute)
	dst = pad2(append(dst, ':'), second)
	if milli := t.Nanosecond() / int(time.Millisecond); milli > 0 {
		dst = append(dst, '.', '0'+byte(milli/100))
		if rest := milli % 100; rest > 0 {
			dst = append(dst, '0'+byte(rest/10))
			if rest%10 > 0 {
				dst = append(dst, '0'+byte(rest%10))
			}
		}
	}
	dst = append(dst, "+00"...)
	if before {
		dst = append(dst, " BC"...)
	}
	return dst
}

func pad2(dst []byte, n int) []byte { return append(dst, '0'+byte(n/10), '0'+byte(n%10)) }
