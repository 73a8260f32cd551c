package bsonjson

import "strconv"

const dayMillis = 86_400_000

// date writes a date, given in milliseconds since 1970.
func (w *walker) date(dst []byte, ms int64) []byte {
	const year10000 = 253_402_300_800_000
	switch {
	case w.Format == Plain:
		dst = appendTime(append(dst, '"'), ms, true)
		return append(dst, '"')
	case w.Format == Canonical || ms < 0 || ms >= year10000:
		return append(wrapInt(append(dst, `{"$date":`...), `{"$numberLong":"`, ms), '}')
	}
	dst = appendTime(append(dst, `{"$date":"`...), ms, ms%1000 != 0)
	return append(dst, `"}`...)
}

// appendTime writes RFC 3339 in UTC. Years that have not four digits get a sign and
// at least six, as ISO 8601 and JavaScript have it.
func appendTime(dst []byte, ms int64, withMillis bool) []byte {
	days, rest := ms/dayMillis, int(ms%dayMillis)
	if rest < 0 {
		days, rest = days-1, rest+dayMillis
	}
	year, month, day := civil(days)
	if year < 0 || year > 9999 {
		sign := byte('+')
		if year < 0 {
			sign, year = '-', -year
		}
		dst = append(dst, sign)
		for limit := int64(100_000); year < limit && limit > 1; limit /= 10 {
			dst = append(dst, '0')
		}
		dst = strconv.AppendInt(dst, year, 10)
	} else {
		dst = pad2(pad2(dst, int(year/100)), int(year%100))
	}
	dst = pad2(append(dst, '-'), month)
	dst = pad2(append(dst, '-'), day)
	dst = pad2(append(dst, 'T'), rest/3_600_000)
	dst = pad2(append(dst, ':'), rest/60_000%60)
	dst = pad2(append(dst, ':'), rest/1000%60)
	if withMillis {
		dst = append(dst, '.', '0'+byte(rest%1000/100))
		dst = pad2(dst, rest%100)
	}
	return append(dst, 'Z')
}

func pad2(dst []byte, n int) []byte { return append(dst, '0'+byte(n/10), '0'+byte(n%10)) }

// civil turns days since 1970 into a date of the proleptic Gregorian calendar.
// It counts from 1 March of year 0, so that the leap day is the last of a year
// (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms").
func civil(days int64) (year int64, month, day int) {
	days += 719_468
	era := days / 146_097
	if days < 0 {
		era = (days - 146_096) / 146_097
	}
	ofEra := int(days - era*146_097)
	yearOfEra := (ofEra - ofEra/1460 + ofEra/36_524 - ofEra/146_096) / 365
	ofYear := ofEra - (365*yearOfEra + yearOfEra/4 - yearOfEra/100)
	shifted := (5*ofYear + 2) / 153
	day = ofYear - (153*shifted+2)/5 + 1
	month = shifted + 3
	if month > 12 {
		month -= 12
	}
	year = era*400 + int64(yearOfEra)
	if month <= 2 {
		year++
	}
	return year, month, day
}
