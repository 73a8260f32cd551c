package postgres

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"
)

// The formats of a parameter (Bind message of the protocol).
const (
	textFormat   int16 = 0
	binaryFormat int16 = 1
)

// Types whose binary form is made here (pg_type.dat).
const (
	uuidOID = "2950"
	int8OID = "20"
	int4OID = "23"
)

// binaryArray is a parameter for an array of the type, in binary form (array_recv):
//
//	dimensions, has NULLs, element type, length, lower bound, then size and bytes of each element
//
// False: the type is none of those that we know, or an element is not as the server prints it.
func binaryArray(oid string, elements []string) ([]byte, bool) {
	size := map[string]int{uuidOID: 16, int8OID: 8, int4OID: 4}[oid]
	if size == 0 {
		return nil, false
	}
	number, _ := strconv.ParseUint(oid, 10, 32)
	b := make([]byte, 0, 20+len(elements)*(4+size))
	put := func(n uint32) { b = binary.BigEndian.AppendUint32(b, n) }
	if len(elements) == 0 {
		put(0)
		put(0)
		put(uint32(number))
		return b, true
	}
	for _, n := range []uint32{1, 0, uint32(number), uint32(len(elements)), 1} {
		put(n)
	}
	for _, e := range elements {
		put(uint32(size))
		if size == 16 {
			var ok bool
			if b, ok = appendUUID(b, e); !ok {
				return nil, false
			}
			continue
		}
		n, err := strconv.ParseInt(e, 10, 8*size)
		switch {
		case err != nil:
			return nil, false
		case size == 8:
			b = binary.BigEndian.AppendUint64(b, uint64(n))
		default:
			put(uint32(n))
		}
	}
	return b, true
}

// appendUUID takes the only form that the server prints: 8-4-4-4-12 digits.
func appendUUID(b []byte, s string) ([]byte, bool) {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return b, false
	}
	var digits [32]byte
	copy(digits[:], s[:8])
	copy(digits[8:], s[9:13])
	copy(digits[12:], s[14:18])
	copy(digits[16:], s[19:23])
	copy(digits[20:], s[24:])
	at := len(b)
	b = append(b, make([]byte, 16)...)
	_, err := hex.Decode(b[at:], digits[:])
	return b, err == nil
}
