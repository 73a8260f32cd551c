package decoder

import (
	"encoding/binary"
	"math"
	"strconv"
	"time"
)

// typeClass is how the binary form of a type becomes the text that the server
// would have printed.
type typeClass uint8

const (
	classUnknown typeClass = iota
	classText              // the binary form is the text
	classBytea
	classJSONB
	classUUID
	classBool
	classInt2
	classInt4
	classInt8
	classTimestamp
	classTimestamptz
)

func classOf(oid uint32) typeClass {
	switch oid {
	case oidText, oidVarchar, oidBPChar, oidJSON, oidName, oidXML, oidChar, oidUnknown:
		return classText
	case oidBytea:
		return classBytea
	case oidJSONB:
		return classJSONB
	case oidUUID:
		return classUUID
	case oidBool:
		return classBool
	case oidInt2:
		return classInt2
	case oidInt4:
		return classInt4
	case oidInt8:
		return classInt8
	case oidTimestamp:
		return classTimestamp
	case oidTimestamptz:
		return classTimestamptz
	}
	return classUnknown
}

// BinaryKnown reports whether rows with a mapped column of this type may be asked
// for in binary form. An enum or a domain has an OID of its own and is not known.
func BinaryKnown(oid uint32) bool { return classOf(oid) != classUnknown }

const (
	problemUnknownType = "unknown type"
	problemLength      = "not the length of this type's binary form"
	problemVersion     = "jsonb of another version than 1"
)

// binaryToText gives the text of a value in binary form: either the input itself
// or new bytes at the end of scratch. problem says why there is none.
func (t typeClass) binaryToText(b, scratch []byte) (text, grown []byte, problem string) {
	start := len(scratch)
	switch t {
	case classText, classBytea:
		return b, scratch, ""
	case classJSONB:
		// jsonb_send: one version byte, then the text.
		if len(b) == 0 || b[0] != 1 {
			return nil, scratch, problemVersion
		}
		return b[1:], scratch, ""
	case classUUID:
		if len(b) != 16 {
			return nil, scratch, problemLength
		}
		scratch = appendUUID(scratch, [16]byte(b))
	case classBool:
		if len(b) != 1 {
			return nil, scratch, problemLength
		}
		scratch = append(scratch, "ft"[b[0]&1])
	case classInt2:
		if len(b) != 2 {
			return nil, scratch, problemLength
		}
		scratch = strconv.AppendInt(scratch, int64(int16(binary.BigEndian.Uint16(b))), 10)
	case classInt4:
		if len(b) != 4 {
			return nil, scratch, problemLength
		}
		scratch = strconv.AppendInt(scratch, int64(int32(binary.BigEndian.Uint32(b))), 10)
	case classInt8, classTimestamp, classTimestamptz:
		if len(b) != 8 {
			return nil, scratch, problemLength
		}
		v := int64(binary.BigEndian.Uint64(b))
		if t == classInt8 {
			scratch = strconv.AppendInt(scratch, v, 10)
		} else {
			scratch = appendTimestamp(scratch, v, t == classTimestamptz)
		}
	default:
		return nil, scratch, problemUnknownType
	}
	return scratch[start:len(scratch):len(scratch)], scratch, ""
}

// appendUUID appends the canonical lower-case form.
func appendUUID(dst []byte, u [16]byte) []byte {
	const digits = "0123456789abcdef"
	for i, c := range u {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			dst = append(dst, '-')
		}
		dst = append(dst, digits[c>>4], digits[c&15])
	}
	return dst
}

// appendTimestamp appends what Postgres prints in ISO style with the time zone
// UTC, for microseconds since 2000-01-01.
func appendTimestamp(dst []byte, pg int64, zone bool) []byte {
	switch pg {
	case math.MaxInt64:
		return append(dst, "infinity"...)
	case math.MinInt64:
		return append(dst, "-infinity"...)
	}
	seconds, micros := pg/1_000_000, pg%1_000_000
	if micros < 0 {
		seconds, micros = seconds-1, micros+1_000_000
	}
	at := time.Unix(seconds+epochShift/1_000_000, 0).UTC()
	year, month, day := at.Date()
	before := year <= 0
	if before {
		year = 1 - year
	}
	dst = append(appendPadded(dst, int64(year), 4), '-')
	dst = append(appendPadded(dst, int64(month), 2), '-')
	dst = append(appendPadded(dst, int64(day), 2), ' ')
	hour, minute, second := at.Clock()
	dst = append(appendPadded(dst, int64(hour), 2), ':')
	dst = append(appendPadded(dst, int64(minute), 2), ':')
	dst = appendPadded(dst, int64(second), 2)
	if micros > 0 {
		dst = appendPadded(append(dst, '.'), micros, 6)
		for dst[len(dst)-1] == '0' {
			dst = dst[:len(dst)-1]
		}
	}
	if zone {
		dst = append(dst, "+00"...)
	}
	if before {
		dst = append(dst, " BC"...)
	}
	return dst
}

func appendPadded(dst []byte, v int64, width int) []byte {
	var buf [20]byte
	digits := strconv.AppendInt(buf[:0], v, 10)
	for range width - len(digits) {
		dst = append(dst, '0')
	}
	return append(dst, digits...)
}
