package bsonjson

import (
	"bytes"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

func value(t testing.TB, v any) (Type, []byte) {
	t.Helper()
	if v == nil {
		return TypeNull, nil // the driver has no encoder for it alone
	}
	kind, raw, err := bson.MarshalValue(v)
	if err != nil {
		t.Fatal(err)
	}
	return Type(kind), raw
}

func TestPayloadKeepsWhatIsEncodedAlready(t *testing.T) {
	t.Parallel()
	doc := bson.D{{Key: "a", Value: int64(1)}}
	_, rawDoc := value(t, doc)
	for _, c := range []struct {
		name              string
		format            Format
		value             any
		want, contentType string
		inPlace           bool
	}{
		{"string", Canonical, "{ \"not\" : touched \xff", "{ \"not\" : touched \xff", "", true},
		{"binary", Plain, bson.Binary{Subtype: 0, Data: []byte{0, 255}}, "\x00\xff", "", true},
		{"old binary", Plain, bson.Binary{Subtype: 2, Data: []byte{0, 255}}, "\x00\xff", "", true},
		{"uuid", Plain, uuid, string(uuid.Data), "", true},
		{"plain", Plain, doc, `{"a":1}`, "application/json", false},
		{"array", Plain, bson.A{"x"}, `["x"]`, "application/json", false},
		{"canonical", Canonical, doc, `{"a":{"$numberLong":"1"}}`, "application/ejson", false},
		{"relaxed", Relaxed, doc, `{"a":1}`, "application/ejson", false},
		{"bson", BSON, doc, string(rawDoc), "application/bson", true},
		{"scalar", BSON, bson.DateTime(0), `{"$date":"1970-01-01T00:00:00Z"}`, "application/ejson", false},
		{"scalar", Plain, int32(4), `4`, "application/json", false},
	} {
		kind, raw := value(t, c.value)
		scratch := append(make([]byte, 0, 100), "kept"...)
		payload, grown, contentType, err := New(Options{Format: c.format}).Payload(scratch, kind, raw)
		if err != nil || string(payload) != c.want || contentType != c.contentType {
			t.Errorf("%s: %q as %q, want %q as %q (%v)", c.name, payload, contentType, c.want, c.contentType, err)
		}
		if string(grown[:4]) != "kept" || (len(grown) == 4) != c.inPlace || cap(payload) != len(payload) {
			t.Errorf("%s: scratch is %q, payload has room for %d", c.name, grown, cap(payload))
		}
	}
	kind, raw := value(t, nil)
	if payload, _, _, err := new(Encoder).Payload(nil, kind, raw); payload != nil || err != nil {
		t.Errorf("null is %q, %v", payload, err)
	}
}

func TestTextIsNeverWrapped(t *testing.T) {
	t.Parallel()
	e := New(Options{Format: Canonical, Int64Text: true})
	for _, c := range []struct {
		value any
		want  string
	}{
		{"a\"b", `a"b`},
		{bson.Symbol("s\"t"), `s"t`},
		{bson.ObjectID{1}, "010000000000000000000000"},
		{uuid, "00112233-4455-6677-8899-aabbccddeeff"},
		{int64(7), "7"},
		{bson.DateTime(0), "1970-01-01T00:00:00.000Z"},
		{decimal(t, "1.50"), "1.50"},
		{true, "true"},
		{nil, ""},
		{bson.D{{Key: "a", Value: "b"}}, `{"a":"b"}`},
	} {
		kind, raw := value(t, c.value)
		got, err := e.AppendText([]byte("k="), kind, raw)
		if err != nil || string(got) != "k="+c.want {
			t.Errorf("%v: %q, want %q (%v)", c.value, got, c.want, err)
		}
	}
}

func TestBSONIsTheSameBytes(t *testing.T) {
	t.Parallel()
	raw := everything(t)
	got, err := New(Options{Format: BSON}).AppendDocument([]byte("x"), raw)
	if err != nil || !bytes.Equal(got[1:], raw) {
		t.Errorf("%q, %v", got, err)
	}
}
