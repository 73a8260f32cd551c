package mongo

import (
	"math"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// The list is in the order in which MongoDB sorts; what is equal stands in one line.
func TestValuesAreComparedAsTheServerDoes(t *testing.T) {
	t.Parallel()
	lines := [][]any{
		{nil, bson.Undefined{}},
		{math.Inf(-1)},
		{int64(math.MinInt64)},
		{int32(-3), -3.0},
		{int32(2), int64(2), 2.0},
		{2.5},
		{int64(1) << 60},
		{""},
		{"A"},
		{"a"},
		{"a\x00"},
		{"ab"},
		{"b"},
		{"ü"},
		{bson.Binary{Data: []byte{9}}},
		{bson.Binary{Data: []byte{1, 1}}},
		{bson.Binary{Subtype: 4, Data: []byte{0, 1}}},
		{bson.ObjectID{1}},
		{bson.ObjectID{1, 0, 1}},
		{false},
		{true},
		{bson.DateTime(-5)},
		{bson.DateTime(5)},
	}
	value := func(v any) bson.RawValue {
		doc, err := bson.Marshal(bson.D{is("v", v)})
		if err != nil {
			t.Fatal(err)
		}
		return bson.Raw(doc).Lookup("v")
	}
	for i, line := range lines {
		for j, other := range lines {
			for _, a := range line {
				for _, b := range other {
					x, y := value(a), value(b)
					want := min(1, max(-1, i-j))
					if got := compareValues(&x, &y); got != want {
						t.Errorf("%v and %v: %d, want %d", a, b, got, want)
					}
				}
			}
		}
	}
	var missing bson.RawValue
	null := value(nil)
	if compareValues(&missing, &null) != 0 {
		t.Error("what is missing is not null")
	}
}
