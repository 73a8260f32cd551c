package decoder

import (
	"strings"
	"testing"

	"github.com/walrelay/walrelay/event"
)

func benchRow() (relation, insert wire) {
	cols := []col{
		{"id", oidUUID, true},
		{"event_id", oidUUID, false},
		{"outbox_route", oidText, false},
		{"event_type", oidText, false},
		{"occurred_at", oidTimestamptz, false},
		{"payload", oidJSONB, false},
		{"status", oidText, false},
		{"ordering_key", oidText, false},
	}
	insert = msg(KindInsert).i32(sampleID).i8('N').i16(len(cols)).
		text("0198c0de-0000-7000-8000-000000000001").text("0198c0de-0000-7000-8000-000000000002").text("orders").
		text("order.placed").text("2023-11-14 22:13:20.123456+00").
		text(`{"note": "` + strings.Repeat("x", 300) + `"}`).text("pending").text("customer-4711")
	return relationBytes(false, 0, sampleID, "public", "outbox", cols...), insert
}

func BenchmarkDecodeInsertOf8Columns(b *testing.B) {
	relation, insert := benchRow()
	d := New(Options{})
	mustDecode(d, relation)
	b.SetBytes(int64(len(insert)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.Decode(insert, sampleLSN); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRowOf8Columns(b *testing.B) {
	relation, insert := benchRow()
	d := New(Options{})
	mustDecode(d, relation)
	ins := mustDecode(d, insert).(*Insert)
	m := newTestMapper(b, event.Forze)
	var ev event.Event
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := m.Row(ins, testTx(), &ev, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMessageWithObject(b *testing.B) {
	m := newTestMapper(b, event.Forze)
	msg := logical("outbox", `{"outbox_route":"orders","ordering_key":"customer-4711","event_type":"order.placed","payload":{"note":"`+
		strings.Repeat("x", 300)+`"},"headers":{"traceparent":"00-1"}}`)
	var ev event.Event
	scratch := make([]byte, 0, 256)
	b.SetBytes(int64(len(msg.Content)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := m.Message(msg, testTx(), &ev, scratch); err != nil {
			b.Fatal(err)
		}
	}
}
