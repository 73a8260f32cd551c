package document

import (
	"bytes"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/mongostream/bsonjson"
)

// judge gives a document to readers of all formats: each answer must be whole.
func judge(t *testing.T, doc []byte) {
	t.Helper()
	kept := bytes.Clone(doc)
	for f := bsonjson.Plain; f <= bsonjson.BSON; f++ {
		r := New(Options{Schema: forze(t), Extra: []string{"attempts", "payload", "_id"}, Format: bsonjson.Options{Format: f, NonFinite: bsonjson.NonFinitePoison}, MaxPayload: 1 << 20})
		ev := event.Event{CommitMicros: commitMicros}
		grown, out := r.Append([]byte("x"), doc, &ev)
		if grown[0] != 'x' || out == Refused && ev.Refused == nil || (out == Publish || out == Deferred) && ev.Refused != nil {
			t.Fatalf("%q: %v, %v", doc, out, ev.Refused)
		}
		if ev.Refused != nil && event.ClassOf(ev.Refused) != event.Poison {
			t.Fatalf("%q: %v", doc, ev.Refused)
		}
		if id := ev.Fields[event.RowID]; id != nil {
			if _, err := DecodeID(id); err != nil {
				t.Fatalf("%q: row id %q: %v", doc, id, err)
			}
		}
	}
	if !bytes.Equal(doc, kept) {
		t.Fatalf("the document was written to: %q", doc)
	}
}

func TestATruncatedDocumentIsRefusedAtEveryByte(t *testing.T) {
	t.Parallel()
	doc := raw(t, full())
	for n := range doc {
		cut := doc[:n:n]
		judge(t, cut)
		ev := event.Event{}
		if _, out := New(Options{Schema: forze(t)}).Append(nil, cut, &ev); out != Refused {
			t.Fatalf("%d bytes of %d: %v", n, len(doc), out)
		}
	}
}

func TestAFlippedByteNeverPanics(t *testing.T) {
	t.Parallel()
	doc := raw(t, full())
	for n := range doc {
		for _, b := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			broken := bytes.Clone(doc)
			broken[n] = b
			judge(t, broken)
		}
	}
}

func FuzzAppend(f *testing.F) {
	f.Add(raw(f, full()))
	f.Add(raw(f, bson.D{{Key: "_id", Value: "x"}, {Key: "payload", Value: bson.A{1.5, nil}}, {Key: "hlc", Value: 2.0}}))
	f.Fuzz(func(t *testing.T, doc []byte) { judge(t, doc) })
}

func FuzzDecodeID(f *testing.F) {
	for _, text := range []string{oidText, `"a"`, `{"$numberLong":"1"}`, `{"a":[1]}`, "null"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := DecodeID(text)
		if err != nil {
			return
		}
		again, err := EncodeID(nil, bsonjson.Type(v.Type), v.Value)
		if err != nil {
			return // what canonical Extended JSON can write and bsonjson refuses, such as bytes that are no text
		}
		if back, err := DecodeID(again); err != nil || back.Type != v.Type {
			t.Fatalf("%q became %v, that %q, and that %v %v", text, v, again, back, err)
		}
	})
}
