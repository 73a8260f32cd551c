package bsonjson

import "testing"

func TestWritingAllocatesNothing(t *testing.T) {
	doc := everything(t)
	buf := make([]byte, 0, 8<<10)
	for f := Plain; f <= BSON; f++ {
		e := New(Options{Format: f, LegacyUUID: LegacyJava})
		if n := testing.AllocsPerRun(100, func() {
			if _, err := e.AppendDocument(buf, doc); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("format %d: %v allocations", f, n)
		}
		if n := testing.AllocsPerRun(100, func() { _, _, _, _ = e.Payload(buf, TypeDocument, doc) }); n != 0 {
			t.Errorf("format %d: %v allocations for a payload", f, n)
		}
	}
}
