package bsonjson

import (
	"math"
	"strconv"
)

// double writes the shortest text that reads back as the same double. A whole
// number keeps a ".0", so that readers who tell integers and doubles apart still can.
func (w *walker) double(dst []byte, f float64, at int) ([]byte, bool) {
	name := ""
	switch {
	case f != f:
		name = "NaN"
	case math.IsInf(f, 1):
		name = "Infinity"
	case math.IsInf(f, -1):
		name = "-Infinity"
	}
	if name != "" && w.Format == Plain {
		return w.nonFinite(dst, TypeDouble, name, at)
	}
	if name != "" || w.Format == Canonical {
		dst = append(dst, `{"$numberDouble":"`...)
		if name != "" {
			dst = append(dst, name...)
		} else {
			dst = appendExtended(dst, f)
		}
		return append(dst, `"}`...), true
	}
	if w.Format == Relaxed {
		return appendExtended(dst, f), true
	}
	return appendPlain(dst, f), true
}

func (w *walker) nonFinite(dst []byte, t Type, name string, at int) ([]byte, bool) {
	if w.NonFinite == NonFinitePoison {
		return dst, w.fail(FaultNonFinite, t, at, 0, 0)
	}
	dst = append(append(dst, '"'), name...)
	return append(dst, '"'), true
}

// appendPlain changes to an exponent where JavaScript and encoding/json do.
func appendPlain(dst []byte, f float64) []byte {
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
		if n := len(dst); dst[n-4] == 'e' && dst[n-2] == '0' { // e-09 to e-9
			dst[n-2] = dst[n-1]
			dst = dst[:n-1]
		}
		return dst
	}
	start := len(dst)
	return pointed(strconv.AppendFloat(dst, f, 'f', -1, 64), start)
}

// appendExtended writes as the Go driver does.
func appendExtended(dst []byte, f float64) []byte {
	start := len(dst)
	return pointed(strconv.AppendFloat(dst, f, 'G', -1, 64), start)
}

func pointed(dst []byte, start int) []byte {
	for _, c := range dst[start:] {
		if c == '.' || c == 'E' {
			return dst
		}
	}
	return append(dst, ".0"...)
}
