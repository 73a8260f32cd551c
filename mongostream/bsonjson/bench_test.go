package bsonjson

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// order is a payload as services write them, of about 600 bytes.
func order(t testing.TB) []byte {
	t.Helper()
	items := bson.A{}
	for i := range 3 {
		items = append(items, bson.D{
			{Key: "sku", Value: fmt.Sprintf("SKU-%06d", i*7919)},
			{Key: "quantity", Value: int32(i + 1)},
			{Key: "unit_price", Value: 19.99 + float64(i)},
			{Key: "description", Value: "a thing with a name of usual length"},
		})
	}
	return document(
		t,
		bson.E{Key: "_id", Value: bson.ObjectID{0x65, 1, 2, 3}}, bson.E{Key: "order_id", Value: "0190c3a2-7b1e-7c00-8000-0123456789ab"},
		bson.E{Key: "customer", Value: bson.D{{Key: "name", Value: "Zoë Example"}, {Key: "email", Value: "zoe@example.org"}, {Key: "since", Value: bson.DateTime(1_600_000_000_000)}}},
		bson.E{Key: "items", Value: items}, bson.E{Key: "total_cents", Value: int64(10_594)}, bson.E{Key: "paid", Value: true},
		bson.E{Key: "placed_at", Value: bson.NewDateTimeFromTime(time.UnixMilli(1_700_000_000_123))}, bson.E{Key: "note", Value: nil},
	)
}

// text is a payload that is mostly one long string.
func text(t testing.TB) []byte {
	t.Helper()
	var s strings.Builder
	for range 40 {
		s.WriteString("some prose, as it comes; now and then a \"quote\"\n")
	}
	return document(t, bson.E{Key: "kind", Value: "note"}, bson.E{Key: "body", Value: s.String()})
}

// The figure is bytes of BSON read per second, on one core.
func BenchmarkAppendDocument(b *testing.B) {
	for _, doc := range []struct {
		name string
		raw  []byte
	}{{"order", order(b)}, {"text", text(b)}} {
		for f, name := range []string{"plain", "relaxed", "canonical", "bson"} {
			b.Run(doc.name+"/"+name, func(b *testing.B) {
				e, buf := New(Options{Format: Format(f)}), make([]byte, 0, 16<<10)
				b.SetBytes(int64(len(doc.raw)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := e.AppendDocument(buf, doc.raw); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		b.Run(doc.name+"/driver-relaxed", func(b *testing.B) {
			b.SetBytes(int64(len(doc.raw)))
			for b.Loop() {
				if _, err := bson.MarshalExtJSON(bson.Raw(doc.raw), false, false); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
