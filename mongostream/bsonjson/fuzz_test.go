package bsonjson

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// FuzzDocument: any bytes are answered with JSON or with a poison error that names
// a byte; nothing is accepted that the driver's own walk refuses.
func FuzzDocument(f *testing.F) {
	doc := everything(f)
	f.Add(doc, uint8(0), false, false)
	f.Add(doc[:len(doc)-3], uint8(1), true, false)
	for _, e := range must(bson.Raw(doc).Elements()) {
		f.Add(document(f, bson.E{Key: e.Key(), Value: e.Value()}), uint8(2), false, true)
	}
	f.Fuzz(func(t *testing.T, doc []byte, legacy uint8, numbers, replace bool) {
		o := Options{LegacyUUID: LegacyUUID(legacy % 4), DecimalNumber: numbers, Int64Text: !numbers}
		if replace {
			o.InvalidText = InvalidReplace
		}
		if judge(t, doc, o) {
			if err := bson.Raw(doc).Validate(); err != nil {
				t.Fatalf("%q is accepted, and the driver says %v", doc, err)
			}
		}
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
