package bsonjson

import (
	"encoding/base64"
	"encoding/hex"
)

// The subtypes of binary that have a meaning here (bsonspec.org).
const (
	subtypeOld        = 2
	subtypeLegacyUUID = 3
	subtypeUUID       = 4
)

// binaryData gives the bytes of the binary start..end, whose span is known.
func (w *walker) binaryData(start, end int) (subtype byte, data []byte) {
	subtype = w.src[start+4]
	start += 5
	if subtype == subtypeOld {
		start += 4
	}
	return subtype, w.src[start:end:end]
}

func (w *walker) appendBinary(dst []byte, start, end int) []byte {
	subtype, data := w.binaryData(start, end)
	if w.Format != Plain {
		dst = base64.StdEncoding.AppendEncode(append(dst, `{"$binary":{"base64":"`...), data)
		dst = hex.AppendEncode(append(dst, `","subType":"`...), []byte{subtype})
		return append(dst, `"}}`...)
	}
	dst = append(dst, '"')
	switch {
	case len(data) == 16 && subtype == subtypeUUID:
		dst = appendUUID(dst, [16]byte(data))
	case len(data) == 16 && subtype == subtypeLegacyUUID && w.LegacyUUID != LegacyRaw:
		dst = appendUUID(dst, w.LegacyUUID.order([16]byte(data)))
	default:
		dst = base64.StdEncoding.AppendEncode(dst, data)
	}
	return append(dst, '"')
}

func appendUUID(dst []byte, id [16]byte) []byte {
	dst = append(hex.AppendEncode(dst, id[:4]), '-')
	dst = append(hex.AppendEncode(dst, id[4:6]), '-')
	dst = append(hex.AppendEncode(dst, id[6:8]), '-')
	dst = append(hex.AppendEncode(dst, id[8:10]), '-')
	return hex.AppendEncode(dst, id[10:])
}

// order gives the bytes in the order of the text.
func (l LegacyUUID) order(b [16]byte) [16]byte {
	switch l {
	case LegacyJava: // two little-endian longs
		return [16]byte{b[7], b[6], b[5], b[4], b[3], b[2], b[1], b[0], b[15], b[14], b[13], b[12], b[11], b[10], b[9], b[8]}
	case LegacyCSharp: // System.Guid: an int and two shorts, little endian, then bytes
		return [16]byte{b[3], b[2], b[1], b[0], b[5], b[4], b[7], b[6], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]}
	}
	return b
}
