package workload

import (
	"encoding/binary"
	"strconv"
)

// tupleTexts cuts the values out of an Insert message of pgoutput:
// 'I', relation id int32, 'N', columns int16, then per column 't', length int32, text.
func tupleTexts(b []byte) []string {
	n := int(binary.BigEndian.Uint16(b[6:]))
	b = b[8:]
	texts := make([]string, n)
	for i := range texts {
		size := binary.BigEndian.Uint32(b[1:])
		texts[i] = string(b[5 : 5+size])
		b = b[5+size:]
	}
	return texts
}

func low16(decimal string) int64 {
	v, _ := strconv.ParseInt(decimal, 10, 64)
	return v & 0xffff
}
