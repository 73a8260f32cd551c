package document

import (
	"encoding/hex"
	"encoding/json"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/mongostream/bsonjson"
)

var canonical = bsonjson.New(bsonjson.Options{Format: bsonjson.Canonical})

// EncodeID appends the text of an _id: of an ObjectId its 24 hex digits, of anything else its
// canonical Extended JSON. Since that has a string in quotes, no two values have one text.
func EncodeID(dst []byte, t bsonjson.Type, value []byte) ([]byte, error) {
	if t == bsonjson.TypeObjectID && len(value) == 12 {
		return hex.AppendEncode(dst, value), nil
	}
	return canonical.AppendValue(dst, t, value)
}

// DecodeID gives the value that EncodeID made the text of.
func DecodeID(text []byte) (bson.RawValue, error) {
	if id, err := bson.ObjectIDFromHex(string(text)); err == nil {
		return bson.RawValue{Type: bson.TypeObjectID, Value: id[:]}, nil
	}
	var doc bson.Raw
	wrapped := append(append([]byte(`{"_id":`), text...), '}')
	// The driver's reader does not mind what comes after the value.
	if err := bson.UnmarshalExtJSON(wrapped, true, &doc); err != nil || !json.Valid(text) {
		return bson.RawValue{}, fmt.Errorf("%q is not the id of a document: want 24 hex digits, or canonical Extended JSON such as \"a string in quotes\"", clipped(text))
	}
	elements, err := doc.Elements()
	if err != nil || len(elements) != 1 {
		return bson.RawValue{}, fmt.Errorf("%q is not the id of one document", clipped(text))
	}
	return elements[0].Value(), nil
}

func clipped(text []byte) []byte { return text[:min(len(text), 100)] }
