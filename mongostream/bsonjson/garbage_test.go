package bsonjson

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"testing"

	"github.com/walrelay/walrelay/event"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// everything is a document with a value of each type.
func everything(t testing.TB) []byte {
	t.Helper()
	return document(
		t,
		bson.E{Key: "double", Value: 1.5}, bson.E{Key: "string", Value: "a \"longer\" text, é"},
		bson.E{Key: "document", Value: bson.D{{Key: "a", Value: bson.A{int32(1), bson.D{}, bson.A{}}}}},
		bson.E{Key: "binary", Value: bson.Binary{Subtype: 5, Data: []byte("12345")}},
		bson.E{Key: "old", Value: bson.Binary{Subtype: 2, Data: []byte("12345")}}, bson.E{Key: "uuid", Value: uuid},
		bson.E{Key: "undefined", Value: bson.Undefined{}}, bson.E{Key: "id", Value: bson.ObjectID{1, 2}},
		bson.E{Key: "bool", Value: true}, bson.E{Key: "date", Value: bson.DateTime(1_700_000_000_123)}, bson.E{Key: "null", Value: nil},
		bson.E{Key: "regex", Value: bson.Regex{Pattern: "a.*", Options: "i"}},
		bson.E{Key: "pointer", Value: bson.DBPointer{DB: "a.b", Pointer: bson.ObjectID{3}}},
		bson.E{Key: "code", Value: bson.JavaScript("x")}, bson.E{Key: "symbol", Value: bson.Symbol("s")},
		bson.E{Key: "scope", Value: bson.CodeWithScope{Code: "x", Scope: bson.D{{Key: "y", Value: "z"}}}},
		bson.E{Key: "int32", Value: int32(5)}, bson.E{Key: "timestamp", Value: bson.Timestamp{T: 1, I: 2}}, bson.E{Key: "int64", Value: int64(6)},
		bson.E{Key: "decimal", Value: decimal(t, "12345678901234567890.1234")}, bson.E{Key: "min", Value: bson.MinKey{}}, bson.E{Key: "max", Value: bson.MaxKey{}},
	)
}

// judge gives what is wrong with how an input was answered in any format, and
// whether it was accepted in the format BSON.
func judge(t *testing.T, doc []byte, o Options) (accepted bool) {
	t.Helper()
	for f := Plain; f <= BSON; f++ {
		o.Format = f
		got, err := New(o).AppendDocument([]byte("x"), doc)
		if err == nil {
			accepted = true
			if f == BSON {
				if string(got[1:]) != string(doc) {
					t.Fatalf("%q became %q", doc, got)
				}
			} else if !json.Valid(got[1:]) {
				t.Fatalf("format %d of %q is no JSON: %s", f, doc, got)
			}
			continue
		}
		if f == BSON && accepted {
			t.Fatalf("%q was written as JSON, but is no BSON: %v", doc, err)
		}
		var e *Error
		if !errors.As(err, &e) || e.Offset < 0 || e.Offset > len(doc) || event.ClassOf(err) != event.Poison || string(got) != "x" {
			t.Fatalf("%q: error %#v, buffer %q", doc, err, got)
		}
	}
	return accepted
}

func TestTruncatedDocumentsAreNeverAccepted(t *testing.T) {
	t.Parallel()
	doc := everything(t)
	if !judge(t, doc, Options{}) {
		t.Fatal("the whole is refused")
	}
	for n := range doc {
		if judge(t, doc[:n:n], Options{}) {
			t.Fatalf("%d bytes of %d are accepted", n, len(doc))
		}
		// The same with a frame that agrees with the length: what is inside is cut.
		if n < 5 {
			continue
		}
		cut := append([]byte{}, doc[:n]...)
		binary.LittleEndian.PutUint32(cut, uint32(n))
		cut[n-1] = 0
		if judge(t, cut, Options{}) && bson.Raw(cut).Validate() != nil {
			t.Fatalf("cut at %d it is accepted, and the driver refuses it", n)
		}
	}
	if judge(t, append(doc, 0), Options{}) {
		t.Fatal("a byte too many is accepted")
	}
}

func TestAnyWrongByteIsAnsweredWithoutPanic(t *testing.T) {
	t.Parallel()
	doc := everything(t)
	for i := range doc {
		for _, b := range []byte{0, 1, 2, 3, 4, 5, 0x7f, 0x80, 0xff, doc[i] + 1, doc[i] - 1} {
			wrong := append([]byte{}, doc...)
			wrong[i] = b
			judge(t, wrong, Options{})
		}
	}
}

func TestFaultsAreToldApart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		doc    string
		fault  Fault
		kind   Type
		offset int
	}{
		{"empty", "", FaultShort, TypeDocument, 0},
		{"frame too small", "\x04\x00\x00\x00\x00", FaultLength, TypeDocument, 0},
		{"frame negative", "\xff\xff\xff\xff\x00", FaultLength, TypeDocument, 0},
		{"frame too large", "\x06\x00\x00\x00\x00", FaultShort, TypeDocument, 0},
		{"frame open", "\x05\x00\x00\x00\x01", FaultTerminator, TypeDocument, 4},
		{"tail", "\x05\x00\x00\x00\x00\x00", FaultTail, TypeDocument, 5},
		{"type", "\x08\x00\x00\x00\x20a\x00\x00", FaultType, 0x20, 7},
		{"name", "\x07\x00\x00\x00\x0aa\x00", FaultTerminator, TypeNull, 5},
		{"bool", "\x09\x00\x00\x00\x08a\x00\x02\x00", FaultBool, TypeBool, 7},
		{"int32", "\x0a\x00\x00\x00\x10a\x00\x02\x00\x00", FaultShort, TypeInt32, 7},
		{"string of 0", "\x0c\x00\x00\x00\x02a\x00\x00\x00\x00\x00\x00", FaultLength, TypeString, 7},
		{"string of 2", "\x0d\x00\x00\x00\x02a\x00\x02\x00\x00\x00\x00\x00", FaultShort, TypeString, 7},
		{"string open", "\x0d\x00\x00\x00\x02a\x00\x01\x00\x00\x00b\x00", FaultTerminator, TypeString, 11},
		{"binary huge", "\x0d\x00\x00\x00\x05a\x00\xff\xff\xff\x7f\x00\x00", FaultShort, TypeBinary, 7},
		{"old binary", "\x12\x00\x00\x00\x05a\x00\x05\x00\x00\x00\x02\x00\x00\x00\x00a\x00", FaultTail, TypeBinary, 16},
	} {
		_, err := new(Encoder).AppendDocument(nil, []byte(c.doc))
		var e *Error
		if !errors.As(err, &e) || e.Fault != c.fault || e.Type != c.kind || e.Offset != c.offset {
			t.Errorf("%s: %+v, want fault %d in %s at %d", c.name, err, c.fault, c.kind, c.offset)
		}
	}
}
