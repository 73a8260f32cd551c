package document

import (
	"bytes"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/mongostream/bsonjson"
)

func TestAnIDComesBackAsTheVeryValue(t *testing.T) {
	t.Parallel()
	decimal, err := bson.ParseDecimal128("1.50")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]any{}
	for _, c := range []struct {
		id   any
		text string
	}{
		{oid, oidText},
		{oidText, `"` + oidText + `"`},
		{"", `""`},
		{"quote \" and \x00 and \u2028 ü", ""},
		{int32(5), `{"$numberInt":"5"}`},
		{int64(5), `{"$numberLong":"5"}`},
		{5.0, `{"$numberDouble":"5.0"}`},
		{"5", `"5"`},
		{true, `true`},
		{bson.DateTime(-1), `{"$date":{"$numberLong":"-1"}}`},
		{bson.Binary{Subtype: 4, Data: uuidBytes}, ""},
		{bson.Binary{Subtype: 3, Data: uuidBytes}, ""},
		{bson.Binary{Subtype: 0, Data: []byte{}}, ""},
		{bson.Timestamp{T: 1, I: 2}, `{"$timestamp":{"t":1,"i":2}}`},
		{decimal, `{"$numberDecimal":"1.50"}`},
		{bson.D{{Key: "tenant", Value: "a"}, {Key: "n", Value: int32(1)}}, `{"tenant":"a","n":{"$numberInt":"1"}}`},
		{bson.D{{Key: "n", Value: int32(1)}, {Key: "tenant", Value: "a"}}, ""},
		{nil, "null"},
		{bson.MinKey{}, `{"$minKey":1}`},
	} {
		element := must(bson.Raw(raw(t, bson.D{{Key: "_id", Value: c.id}})).LookupErr("_id"))
		text, err := EncodeID(nil, bsonjson.Type(element.Type), element.Value)
		if err != nil {
			t.Errorf("%v: %v", c.id, err)
			continue
		}
		if c.text != "" && string(text) != c.text {
			t.Errorf("%v is %s, want %s", c.id, text, c.text)
		}
		if other, taken := texts[string(text)]; taken {
			t.Errorf("%v and %v are both %s", c.id, other, text)
		}
		texts[string(text)] = c.id
		back, err := DecodeID(text)
		if err != nil || back.Type != element.Type || !bytes.Equal(back.Value, element.Value) {
			t.Errorf("%s comes back as %v %v (%v)", text, back.Type, back.Value, err)
		}
	}
	for _, text := range []string{"", "x", "{", `"a","b":"c"`, `1}{`, "650102030405060708090a0", `{"$oid":1}`, `"a"}`} {
		if v, err := DecodeID([]byte(text)); err == nil {
			t.Errorf("%q is taken for %v", text, v)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
