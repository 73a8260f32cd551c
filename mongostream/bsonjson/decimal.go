package bsonjson

import (
	"encoding/binary"
	"math/bits"
	"strconv"
)

// decimal writes the Decimal128 at off.
func (w *walker) decimal(dst []byte, off int) ([]byte, bool) {
	low := binary.LittleEndian.Uint64(w.src[off:])
	high := binary.LittleEndian.Uint64(w.src[off+8:])
	name := ""
	switch {
	case high>>58&0x1f == 0x1f:
		name = "NaN"
	case high>>58&0x1f == 0x1e && high>>63 == 0:
		name = "Infinity"
	case high>>58&0x1f == 0x1e:
		name = "-Infinity"
	}
	switch {
	case w.Format != Plain:
		dst = append(dst, `{"$numberDecimal":"`...)
	case name != "":
		return w.nonFinite(dst, TypeDecimal128, name, off)
	case w.DecimalNumber:
		return appendDecimal(dst, high, low), true
	default:
		dst = append(dst, '"')
	}
	if name != "" {
		dst = append(dst, name...)
	} else {
		dst = appendDecimal(dst, high, low)
	}
	dst = append(dst, '"')
	if w.Format != Plain {
		dst = append(dst, '}')
	}
	return dst, true
}

// appendDecimal writes a finite Decimal128 as the BSON Decimal128 specification says
// ("To String Representation"): digits are kept, trailing zeros with them, and an
// exponent is used where it is above zero or the number below 1e-6. The text is a JSON number too.
//
//	bit 63       sign
//	bits 62, 61  both set: exponent in 60..47, and a coefficient too large to be valid, which stands for 0
//	otherwise    exponent in 62..49, coefficient in 48..0 and the low word
func appendDecimal(dst []byte, high, low uint64) []byte {
	const (
		bias = 6176
		e19  = 10_000_000_000_000_000_000
		e15  = 1_000_000_000_000_000
	)
	if high>>63 == 1 {
		dst = append(dst, '-')
	}
	exponent := int(high>>49&(1<<14-1)) - bias
	coefficient := high & (1<<49 - 1)
	if high>>61&3 == 3 {
		exponent, coefficient, low = int(high>>47&(1<<14-1))-bias, 0, 0
	}
	head, tail := bits.Div64(coefficient, low, e19)
	if head >= e15 { // more than 34 digits
		head, tail = 0, 0
	}
	var buf [40]byte
	digits := buf[:0]
	if head > 0 {
		digits = strconv.AppendUint(digits, head, 10)
		n := len(digits)
		digits = digits[:n+19]
		for i := n + 18; i >= n; i-- {
			digits[i] = '0' + byte(tail%10)
			tail /= 10
		}
	} else {
		digits = strconv.AppendUint(digits, tail, 10)
	}
	adjusted := exponent + len(digits) - 1
	if exponent > 0 || adjusted < -6 {
		dst = append(dst, digits[0])
		if len(digits) > 1 {
			dst = append(append(dst, '.'), digits[1:]...)
		}
		dst = append(dst, 'E')
		if adjusted >= 0 {
			dst = append(dst, '+')
		}
		return strconv.AppendInt(dst, int64(adjusted), 10)
	}
	whole := len(digits) + exponent
	if exponent == 0 {
		return append(dst, digits...)
	}
	if whole > 0 {
		dst = append(dst, digits[:whole]...)
		return append(append(dst, '.'), digits[whole:]...)
	}
	dst = append(dst, "0."...)
	for range -whole {
		dst = append(dst, '0')
	}
	return append(dst, digits...)
}
