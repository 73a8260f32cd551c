package mongo

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// rank is the place of a type among the others when MongoDB sorts ("Comparison/Sort Order" of
// its manual). What a field of the order is never made of comes last, by its bytes.
func rank(v *bson.RawValue) int {
	switch v.Type {
	case 0, bson.TypeNull, bson.TypeUndefined: // 0: no such field
		return 0
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDouble:
		return 1
	case bson.TypeString, bson.TypeSymbol:
		return 2
	case bson.TypeBinary:
		return 3
	case bson.TypeObjectID:
		return 4
	case bson.TypeBoolean:
		return 5
	case bson.TypeDateTime:
		return 6
	default:
		return 7
	}
}

func isNull(v *bson.RawValue) bool { return rank(v) == 0 }

// compareValues compares two values as the server does.
func compareValues(a, b *bson.RawValue) int {
	of := rank(a)
	if c := cmp.Compare(of, rank(b)); c != 0 || of == 0 {
		return c
	}
	switch of {
	case 1:
		return compareNumbers(a, b)
	case 2:
		return bytes.Compare(textOf(a.Value), textOf(b.Value))
	case 3:
		// By length, which stands in front with its lowest byte first; then by subtype and content.
		if c := cmp.Compare(length(a.Value), length(b.Value)); c != 0 {
			return c
		}
	case 6:
		return cmp.Compare(whole(a), whole(b))
	}
	return bytes.Compare(a.Value, b.Value)
}

func compareNumbers(a, b *bson.RawValue) int {
	if a.Type == bson.TypeDouble || b.Type == bson.TypeDouble {
		return cmp.Compare(real64(a), real64(b))
	}
	return cmp.Compare(whole(a), whole(b))
}

// whole is an integer or a date.
func whole(v *bson.RawValue) int64 {
	switch len(v.Value) {
	case 8:
		return int64(binary.LittleEndian.Uint64(v.Value))
	case 4:
		return int64(int32(binary.LittleEndian.Uint32(v.Value)))
	}
	return 0
}

func real64(v *bson.RawValue) float64 {
	if v.Type == bson.TypeDouble && len(v.Value) == 8 {
		return math.Float64frombits(binary.LittleEndian.Uint64(v.Value))
	}
	return float64(whole(v))
}

func length(v []byte) int {
	if len(v) < 4 {
		return 0
	}
	return int(int32(binary.LittleEndian.Uint32(v)))
}

func textOf(v []byte) []byte {
	if len(v) < 5 {
		return nil
	}
	return v[4 : len(v)-1]
}
