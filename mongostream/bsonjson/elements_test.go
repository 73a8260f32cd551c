package bsonjson

import (
	"bytes"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

func TestElementsAreThoseOfTheDriver(t *testing.T) {
	t.Parallel()
	doc := everything(t)
	theirs := must(bson.Raw(doc).Elements())
	var e Elements
	if !e.Start(doc) {
		t.Fatal(e.Err())
	}
	for _, want := range theirs {
		if !e.Next() || string(e.Name) != want.Key() || e.Type != Type(want.Value().Type) || !bytes.Equal(e.Value, want.Value().Value) {
			t.Errorf("%s %s %q, want %s", e.Name, e.Type, e.Value, want)
		}
	}
	if e.Next() || e.Err() != nil {
		t.Errorf("an element too many: %s (%v)", e.Name, e.Err())
	}
}

func TestElementsOfATruncatedDocumentEndInAnError(t *testing.T) {
	t.Parallel()
	doc := everything(t)
	for n := range doc {
		var e Elements
		if e.Start(doc[:n]) || e.Err() == nil {
			t.Fatalf("%d bytes of %d are taken for a document", n, len(doc))
		}
		flipped := bytes.Clone(doc) // and whatever else is wrong, the walk comes to an end
		flipped[n] ^= 0x55
		for ok := e.Start(flipped); ok; ok = e.Next() {
		}
	}
}
