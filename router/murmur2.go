package router

import "encoding/binary"

// murmur2 is the 32-bit hash of org.apache.kafka.common.utils.Utils.murmur2,
// the one Java producers place keys with. Other clients' defaults (FNV, CRC32)
// would move every key to another partition.
func murmur2(data []byte) int32 {
	const (
		seed = 0x9747b28c
		m    = 0x5bd1e995
		r    = 24
	)
	h := seed ^ uint32(len(data))
	for len(data) >= 4 {
		k := binary.LittleEndian.Uint32(data)
		data = data[4:]
		k *= m
		k ^= k >> r
		k *= m
		h *= m
		h ^= k
	}
	switch len(data) {
	case 3:
		h ^= uint32(data[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(data[1]) << 8
		fallthrough
	case 1:
		h ^= uint32(data[0])
		h *= m
	}
	h ^= h >> 13
	h *= m
	h ^= h >> 15
	return int32(h)
}

// hash clears the sign bit, as Java's Utils.toPositive does. (Taking the
// absolute value instead is the classic mistake: it moves half of the keys.)
func hash(key []byte) uint32 { return uint32(murmur2(key)) & 0x7fffffff }
