package mongo

import (
	"strconv"
	"strings"
)

// sameNumber reports whether two decimal literals name the same number: whether what
// a double prints is what was written, 1.50 and 15e-1 for instance.
func sameNumber(a, b string) bool {
	da, ea, oka := decimal(a)
	db, eb, okb := decimal(b)
	return oka && okb && da == db && ea == eb
}

// decimal takes a literal apart: its digits without zeros at either end, a minus in
// front, and the power of ten that they are to be multiplied by. Zero has no digits.
func decimal(literal string) (digits string, power int, ok bool) {
	mantissa, minus := strings.CutPrefix(literal, "-")
	if i := strings.IndexAny(mantissa, "eE"); i >= 0 {
		n, err := strconv.Atoi(mantissa[i+1:])
		if err != nil {
			return "", 0, false // more digits in the exponent than a machine word: no double
		}
		mantissa, power = mantissa[:i], n
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	power -= len(fraction)
	digits = strings.TrimLeft(whole+fraction, "0")
	short := strings.TrimRight(digits, "0")
	power += len(digits) - len(short)
	if short == "" {
		return "", 0, true
	}
	if minus {
		short = "-" + short
	}
	return short, power, true
}
