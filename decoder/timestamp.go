package decoder

import "math"

// parseTimestamp reads a timestamp as Postgres prints it in ISO style, and as
// JSON writers do (T, Z):
//
//	2026-08-21 10:15:00.123456+00      294276-12-31 23:59:59.999999+05:53:28
//	0044-03-15 12:00:00-03 BC          infinity, -infinity
//
// The result is in microseconds since 1970 UTC; without an offset the time is
// taken for UTC. What is beyond 64 bits, as infinity, becomes the outermost value.
func parseTimestamp(b []byte) (int64, bool) {
	switch string(b) {
	case "infinity":
		return math.MaxInt64, true
	case "-infinity":
		return math.MinInt64, true
	}
	t := timeText{b: b, ok: true}
	year, digits := t.number(4, 6)
	t.expect('-')
	month, _ := t.number(2, 2)
	t.expect('-')
	day, _ := t.number(2, 2)
	var hour, minute, second, micro int64
	if t.ok && len(t.b) > 0 && (t.b[0] == ' ' || t.b[0] == 'T') && string(t.b) != " BC" {
		t.b = t.b[1:]
		hour, _ = t.number(2, 2)
		t.expect(':')
		minute, _ = t.number(2, 2)
		t.expect(':')
		second, _ = t.number(2, 2)
		micro = t.fraction()
	}
	offset := t.offset()
	if string(t.b) == " BC" && digits > 0 {
		t.b = nil
		year = 1 - year
	}
	if !t.ok || len(t.b) > 0 || month < 1 || month > 12 || day < 1 || day > 31 || hour > 24 || minute > 59 || second > 60 {
		return 0, false
	}
	seconds := daysFromCivil(year, month, day)*86_400 + hour*3_600 + minute*60 + second - offset
	switch {
	case seconds >= math.MaxInt64/1_000_000:
		return math.MaxInt64, true
	case seconds <= math.MinInt64/1_000_000:
		return math.MinInt64, true
	}
	return seconds*1_000_000 + micro, true
}

// timeText is the rest of a timestamp; ok falls at the first thing that does not fit.
type timeText struct {
	b  []byte
	ok bool
}

// number takes between least and most digits.
func (t *timeText) number(least, most int) (v int64, digits int) {
	for digits < most && digits < len(t.b) && t.b[digits] >= '0' && t.b[digits] <= '9' {
		v = v*10 + int64(t.b[digits]-'0')
		digits++
	}
	t.b = t.b[digits:]
	t.ok = t.ok && digits >= least
	return v, digits
}

func (t *timeText) expect(c byte) {
	if len(t.b) == 0 || t.b[0] != c {
		t.ok = false
		return
	}
	t.b = t.b[1:]
}

// fraction takes the part after the point; what is finer than a microsecond is cut.
func (t *timeText) fraction() int64 {
	if len(t.b) == 0 || t.b[0] != '.' {
		return 0
	}
	t.b = t.b[1:]
	v, digits := t.number(1, 6)
	for ; digits < 6; digits++ {
		v *= 10
	}
	for len(t.b) > 0 && t.b[0] >= '0' && t.b[0] <= '9' {
		t.b = t.b[1:]
	}
	return v
}

// offset takes Z, ±HH, ±HHMM, ±HH:MM or ±HH:MM:SS and gives seconds east of UTC.
func (t *timeText) offset() int64 {
	if len(t.b) == 0 {
		return 0
	}
	sign := int64(1)
	switch t.b[0] {
	case 'Z':
		t.b = t.b[1:]
		return 0
	case '-':
		sign = -1
	case '+':
	default:
		return 0
	}
	t.b = t.b[1:]
	seconds, _ := t.number(2, 2)
	seconds *= 3_600
	for unit := int64(60); unit > 0 && len(t.b) > 0 && t.b[0] != ' '; unit /= 60 {
		if t.b[0] == ':' {
			t.b = t.b[1:]
		}
		v, _ := t.number(2, 2)
		seconds += v * unit
	}
	return sign * seconds
}

// daysFromCivil counts days since 1970-01-01 in the proleptic Gregorian calendar,
// years astronomically (0 is 1 BC). Howard Hinnant, "chrono-Compatible Low-Level
// Date Algorithms".
func daysFromCivil(year, month, day int64) int64 {
	if month <= 2 {
		year--
	}
	era := year / 400
	if year < 0 {
		era = (year - 399) / 400
	}
	yearOfEra := year - era*400
	dayOfYear := (153*((month+9)%12)+2)/5 + day - 1
	dayOfEra := yearOfEra*365 + yearOfEra/4 - yearOfEra/100 + dayOfYear
	return era*146_097 + dayOfEra - 719_468
}
