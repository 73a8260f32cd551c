package router

import (
	"bytes"
	"time"
)

// instant is a point of time, as far as the text told it.
type instant struct {
	sec   int64 // since 1970 UTC, proleptic Gregorian calendar
	micro int   // 0…999999
	exact bool  // false: the text had digits beyond the microsecond
}

// The years that both RFC 3339 and Python's isoformat can write.
const (
	firstSecond = -62135596800 // 0001-01-01 00:00:00
	lastSecond  = 253402300799 // 9999-12-31 23:59:59
)

// parseTimestamp reads a time in any of the shapes that a source prints:
//
//	2024-05-01 12:00:00.000007+05:30      timestamptz; offset +HH, +HH:MM or +HH:MM:SS
//	2024-05-01 12:00:00                   timestamp: taken as UTC
//	0044-03-15 12:00:00+00 BC             before our era
//	294276-12-31 23:59:59.999999+00       years of more than four digits
//	2024-05-01T12:00:00Z                  ISO 8601, as messages carry it
//	1714564800000                         bigint: milliseconds since 1970
//
// It returns false for infinity, -infinity and everything else: what cannot be
// read is passed on as it is, never refused.
//
// Source: PostgreSQL src/backend/utils/adt/datetime.c, EncodeDateTime with
// DateStyle ISO.
func parseTimestamp(text []byte) (instant, bool) {
	if millis, ok := parseMillis(text); ok {
		return millis, true
	}
	c := cursor{rest: text}
	year := c.number(4, 9)
	c.byte('-')
	month := c.number(2, 2)
	c.byte('-')
	day := c.number(2, 2)
	if !c.skip('T') {
		c.byte(' ')
	}
	hour := c.number(2, 2)
	c.byte(':')
	minute := c.number(2, 2)
	second, micro, exact := 0, 0, true
	if c.skip(':') {
		second = c.number(2, 2)
		if c.skip('.') {
			micro, exact = c.fraction()
		}
	}
	offset := c.offset()
	if year < 1 { // there is no year 0 on either side
		return instant{}, false
	}
	if string(c.rest) == " BC" {
		year, c.rest = 1-year, nil
	}
	if c.bad || len(c.rest) > 0 || month < 1 || month > 12 || hour > 23 || minute > 59 || second > 59 {
		return instant{}, false
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC)
	if t.Day() != day { // normalised: no such day
		return instant{}, false
	}
	return instant{sec: t.Unix() - int64(offset), micro: micro, exact: exact}, true
}

// parseMillis reads a plain integer.
func parseMillis(text []byte) (instant, bool) {
	digits, negative := bytes.CutPrefix(text, []byte("-"))
	if len(digits) == 0 || len(digits) > 18 {
		return instant{}, false
	}
	var v int64
	for _, d := range digits {
		if d < '0' || d > '9' {
			return instant{}, false
		}
		v = v*10 + int64(d-'0')
	}
	if negative {
		v = -v
	}
	sec, milli := v/1000, v%1000
	if milli < 0 {
		sec, milli = sec-1, milli+1000
	}
	return instant{sec: sec, micro: int(milli) * 1000, exact: true}, true
}

// iso reports whether the instant can be written as isoformat without loss.
func (t instant) iso() bool { return t.exact && t.sec >= firstSecond && t.sec <= lastSecond }

// appendISO writes what Python's datetime.isoformat does for a time in UTC: no
// fraction when it is zero, else six digits; the offset is +00:00, never Z.
func (t instant) appendISO(dst []byte) []byte {
	u := time.Unix(t.sec, 0).UTC()
	year, month, day := u.Date()
	hour, minute, second := u.Clock()
	dst = appendPadded(dst, year, 4)
	dst = appendPadded(append(dst, '-'), int(month), 2)
	dst = appendPadded(append(dst, '-'), day, 2)
	dst = appendPadded(append(dst, 'T'), hour, 2)
	dst = appendPadded(append(dst, ':'), minute, 2)
	dst = appendPadded(append(dst, ':'), second, 2)
	if t.micro != 0 {
		dst = appendPadded(append(dst, '.'), t.micro, 6)
	}
	return append(dst, "+00:00"...)
}

// millis is the record's time; false when no sane record may carry it.
func (t instant) millis() (int64, bool) {
	if t.sec < 0 || t.sec > lastSecond {
		return 0, false
	}
	return t.sec*1000 + int64(t.micro/1000), true
}

func appendPadded(dst []byte, v, width int) []byte {
	var buf [6]byte
	for i := width - 1; i >= 0; i-- {
		buf[i] = byte('0' + v%10)
		v /= 10
	}
	return append(dst, buf[:width]...)
}
