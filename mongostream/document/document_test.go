package document

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/mongostream/bsonjson"
)

const commitMicros = 1_700_000_000_500_400 // half a second and 400 µs

func forze(t testing.TB) event.Schema { return schema(t, event.Forze) }

func schema(t testing.TB, p event.Preset) event.Schema {
	t.Helper()
	s, err := event.NewSchema(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func raw(t testing.TB, d bson.D) []byte {
	t.Helper()
	b, err := bson.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var oid = bson.ObjectID{0x65, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}

const oidText = "650102030405060708090a0b"

var uuidBytes = []byte{0x01, 0x90, 0xc3, 0xa2, 0x7b, 0x1e, 0x7c, 0x00, 0x80, 0x00, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab}

const uuidText = "0190c3a2-7b1e-7c00-8000-0123456789ab"

// full is a document with every field of the contract, with the types its writer uses.
func full() bson.D {
	return bson.D{
		{Key: "_id", Value: oid},
		{Key: "id", Value: uuidText},
		{Key: "outbox_route", Value: "orders"},
		{Key: "event_id", Value: bson.Binary{Subtype: 4, Data: uuidBytes}},
		{Key: "event_type", Value: "order.created"},
		{Key: "ordering_key", Value: bson.ObjectID{0xab}},
		{Key: "tenant_id", Value: uuidText},
		{Key: "execution_id", Value: nil},
		{Key: "correlation_id", Value: uuidText},
		{Key: "causation_id", Value: bson.Binary{Subtype: 4, Data: uuidBytes}},
		{Key: "occurred_at", Value: bson.DateTime(1_700_000_000_120)},
		{Key: "created_at", Value: bson.DateTime(1_700_000_000_000)},
		{Key: "payload", Value: bson.D{{Key: "n", Value: int32(1)}, {Key: "when", Value: bson.DateTime(0)}}},
		{Key: "status", Value: "pending"},
		{Key: "attempts", Value: int32(0)},
		{Key: "available_at", Value: nil},
		{Key: "hlc", Value: int64(111_411_200_000_000_007)},
		{Key: "traceparent", Value: "00-1-2-01"},
	}
}

func read(t testing.TB, o Options, d bson.D) (event.Event, Outcome) {
	t.Helper()
	ev := event.Event{CommitMicros: commitMicros, Ordinal: 3, Commit: event.AtToken("82")}
	_, out := New(o).Append(nil, raw(t, d), &ev)
	return ev, out
}

func want(t *testing.T, ev *event.Event, f event.Field, text string) {
	t.Helper()
	if got := ev.Fields[f]; got == nil || string(got) != text {
		t.Errorf("%s is %q (nil: %v), want %q", f, got, got == nil, text)
	}
}

func TestEachFieldIsTheTextThatPostgresWouldPrint(t *testing.T) {
	t.Parallel()
	ev, out := read(t, Options{Schema: forze(t), Relation: "shop.outbox", Extra: []string{"attempts", "created_at", "missing", "outbox_route"}}, full())
	if out != Publish || ev.Refused != nil {
		t.Fatalf("outcome %v, refused %v", out, ev.Refused)
	}
	for f, text := range map[event.Field]string{
		event.RowID: oidText, event.EventID: uuidText, event.Route: "orders", event.Key: "ab0000000000000000000000",
		event.Type: "order.created", event.Payload: `{"n":1,"when":"1970-01-01T00:00:00.000Z"}`,
		event.OccurredAt: "2023-11-14 22:13:20.12+00", event.Tenant: uuidText, event.Correlation: uuidText, event.Causation: uuidText,
		event.Traceparent: "00-1-2-01", event.HLC: "111411200000000007", event.Status: "pending",
	} {
		want(t, &ev, f, text)
	}
	for _, f := range []event.Field{event.Execution, event.AvailableAt, event.PublishedAt, event.Version} {
		if ev.Fields[f] != nil {
			t.Errorf("%s is %q, want nil", f, ev.Fields[f])
		}
	}
	if ev.Relation != "shop.outbox" || ev.Ordinal != 3 || ev.Commit != event.AtToken("82") || ev.CommitMicros != commitMicros {
		t.Errorf("event %+v", ev)
	}
	if e := ev.Extra; string(e[0]) != "0" || string(e[1]) != "2023-11-14 22:13:20+00" || e[2] != nil || string(e[3]) != "orders" {
		t.Errorf("extra %q", e)
	}
}

// with replaces or adds a field of the full document.
func with(key string, value any) bson.D {
	d := slices.DeleteFunc(full(), func(e bson.E) bool { return e.Key == key })
	return append(d, bson.E{Key: key, Value: value})
}

func without(key string) bson.D {
	return slices.DeleteFunc(full(), func(e bson.E) bool { return e.Key == key })
}

func TestValuesOfEveryTypeBecomePlainText(t *testing.T) {
	t.Parallel()
	big, err := bson.ParseDecimal128("12345678901234567890.5")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		value any
		text  string
	}{
		{"a \"text\" \x00 with all", "a \"text\" \x00 with all"},
		{"", ""},
		{"\xff\xfe", "\xff\xfe"},
		{int32(-5), "-5"},
		{int64(math.MaxInt64), "9223372036854775807"},
		{5.0, "5"},
		{math.Copysign(0, -1), "0"},
		{2.5, "2.5"},
		{big, "12345678901234567890.5"},
		{true, "true"},
		{bson.ObjectID{1}, "010000000000000000000000"},
		{bson.Binary{Subtype: 4, Data: uuidBytes}, uuidText},
		{bson.Binary{Subtype: 0, Data: []byte("abc")}, "YWJj"},
		{bson.DateTime(1_700_000_000_123), "2023-11-14 22:13:20.123+00"},
		{bson.D{{Key: "a", Value: "b"}}, `{"a":"b"}`},
		{bson.A{int32(1)}, `[1]`},
		{bson.Symbol("s"), "s"},
	} {
		ev, out := read(t, Options{Schema: forze(t)}, with("ordering_key", c.value))
		if out != Publish {
			t.Errorf("%v: %v %v", c.value, out, ev.Refused)
		}
		want(t, &ev, event.Key, c.text)
	}
	ev, _ := read(t, Options{Schema: forze(t), Format: bsonjson.Options{LegacyUUID: bsonjson.LegacyJava}}, with("causation_id", bson.Binary{Subtype: 3, Data: uuidBytes}))
	want(t, &ev, event.Causation, "007c1e7b-a2c3-9001-ab89-674523010080")

	ev, out := read(t, Options{Schema: forze(t)}, with("event_id", bson.Binary{Subtype: 3, Data: uuidBytes}))
	if out != Refused || !strings.Contains(ev.Refused.Error(), `"event_id"`) || !strings.Contains(ev.Refused.Error(), "legacy_uuid") {
		t.Errorf("a UUID whose writer is not known: %v %v", out, ev.Refused)
	}
}

func TestPayloadIsWrittenAsAskedAndTextAndBinaryAreUntouched(t *testing.T) {
	t.Parallel()
	doc := bson.D{{Key: "n", Value: int64(1)}}
	for _, c := range []struct {
		format  bsonjson.Format
		value   any
		payload string
		header  string
	}{
		{bsonjson.Plain, doc, `{"n":1}`, ""},
		{bsonjson.Relaxed, doc, `{"n":1}`, "application/ejson"},
		{bsonjson.Canonical, doc, `{"n":{"$numberLong":"1"}}`, "application/ejson"},
		{bsonjson.BSON, doc, string(raw(t, doc)), "application/bson"},
		{bsonjson.Plain, bson.A{int32(1), "x"}, `[1,"x"]`, ""},
		{bsonjson.Canonical, ` {"already": 1e0}`, ` {"already": 1e0}`, ""},
		{bsonjson.Plain, bson.Binary{Data: []byte{0, 255}}, "\x00\xff", ""},
	} {
		ev, out := read(t, Options{Schema: forze(t), Format: bsonjson.Options{Format: c.format}}, with("payload", c.value))
		if out != Publish {
			t.Errorf("%v: %v %v", c.value, out, ev.Refused)
		}
		want(t, &ev, event.Payload, c.payload)
		var header strings.Builder
		for _, h := range ev.Headers {
			header.WriteString(string(h.Value))
		}
		if header.String() != c.header {
			t.Errorf("%v in format %d: headers %q, want %q", c.value, c.format, header.String(), c.header)
		}
	}
	for _, d := range []bson.D{with("payload", nil), without("payload")} {
		if ev, out := read(t, Options{Schema: forze(t)}, d); out != Publish || ev.Fields[event.Payload] != nil {
			t.Errorf("a missing payload is %q, %v", ev.Fields[event.Payload], out)
		}
	}
	ev, _ := read(t, Options{Schema: forze(t), MaxPayload: 10}, full())
	if size := len(raw(t, bson.D{{Key: "n", Value: int32(1)}, {Key: "when", Value: bson.DateTime(0)}})); ev.Elided != int64(size) || ev.Fields[event.Payload] != nil {
		t.Errorf("elided %d, payload %q", ev.Elided, ev.Fields[event.Payload])
	}
}

func TestStateAndTimesDecideAsOnPostgres(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		d    bson.D
		want Outcome
	}{
		{without("status"), Publish},
		{with("status", nil), Publish},
		{with("status", "processing"), IgnoredStatus},
		{with("status", "failed"), IgnoredStatus},
		{with("published_at", bson.DateTime(1)), IgnoredPublished},
		{with("published_at", nil), Publish},
		{with("available_at", bson.DateTime(1_700_000_000_500)), Publish},
		{with("available_at", bson.DateTime(1_700_000_000_501)), Deferred},
		{with("available_at", bson.DateTime(math.MaxInt64)), Deferred},
		{with("available_at", bson.DateTime(math.MinInt64)), Publish},
		{with("available_at", "2023-11-14"), Refused},
		{with("hlc", 2.5), Refused},
		{with("hlc", bson.D{}), Refused},
		{with("hlc", float64(1<<53)), Publish},
		{with("hlc", 1e300), Refused},
		{with("hlc", math.NaN()), Refused},
		{with("hlc", "7"), Publish},
		{without("_id"), Refused},
		{with("payload", bson.D{{Key: "a", Value: "\xff"}}), Refused},
	} {
		ev, out := read(t, Options{Schema: forze(t)}, c.d)
		if out != c.want {
			t.Errorf("%v: %v, want %v (%v)", c.d, out, c.want, ev.Refused)
		}
		if (out == Refused) != (ev.Refused != nil) {
			t.Errorf("%v: outcome %v and refused %v", c.d, out, ev.Refused)
		}
	}
	ev, _ := read(t, Options{Schema: forze(t)}, with("hlc", float64(111_411_200_000_000_000)))
	want(t, &ev, event.HLC, "111411200000000000")
}

func TestARefusedDocumentKeepsWhatItTakesToPutItAside(t *testing.T) {
	t.Parallel()
	ev, out := read(t, Options{Schema: forze(t)}, append(with("hlc", 2.5), bson.E{Key: "aggregate_version", Value: int32(1)}))
	if out != Refused || event.ClassOf(ev.Refused) != event.Poison {
		t.Fatalf("%v %v", out, ev.Refused)
	}
	var e *event.Error
	if !errors.As(ev.Refused, &e) || e.Anchor != "poison-row" || e.What != `the document's field "hlc" cannot be read` {
		t.Errorf("refused because %v", ev.Refused)
	}
	want(t, &ev, event.RowID, oidText)
	want(t, &ev, event.Route, "orders")
	want(t, &ev, event.Key, "ab0000000000000000000000")
	want(t, &ev, event.Payload, `{"n":1,"when":"1970-01-01T00:00:00.000Z"}`)
	if ev.Fields[event.HLC] != nil {
		t.Errorf("hlc is %q", ev.Fields[event.HLC])
	}
}

func TestEventIDIsOfTheDocumentOrItsID(t *testing.T) {
	t.Parallel()
	d := bson.D{
		{Key: "_id", Value: "order-1"},
		{Key: "aggregatetype", Value: "orders"},
		{Key: "aggregateid", Value: int32(7)},
		{Key: "type", Value: "created"},
		{Key: "payload", Value: "{}"},
		{Key: "timestamp", Value: int64(1_700_000_000_000)},
	}
	o := Options{Schema: schema(t, event.Debezium)}
	ev, out := read(t, o, d)
	if out != Publish {
		t.Fatalf("%v %v", out, ev.Refused)
	}
	want(t, &ev, event.RowID, `"order-1"`)
	want(t, &ev, event.EventID, "order-1")
	want(t, &ev, event.Key, "7")
	want(t, &ev, event.OccurredAt, "1700000000000")
	ev, _ = read(t, o, append(d, bson.E{Key: "id", Value: bson.Binary{Subtype: 4, Data: uuidBytes}}))
	want(t, &ev, event.RowID, `"order-1"`)
	want(t, &ev, event.EventID, uuidText)
	ev, _ = read(t, Options{Schema: forze(t)}, without("event_id"))
	if ev.Fields[event.EventID] != nil {
		t.Errorf("an event id was made up: %q", ev.Fields[event.EventID])
	}
}

func TestOfTwoFieldsOfOneNameTheFirstCounts(t *testing.T) {
	t.Parallel()
	d := append(full(), bson.E{Key: "outbox_route", Value: "second"}, bson.E{Key: "execution_id", Value: uuidText}, bson.E{Key: "attempts", Value: int32(9)}, bson.E{Key: "_id", Value: "x"})
	ev, _ := read(t, Options{Schema: forze(t), Extra: []string{"attempts"}}, d)
	want(t, &ev, event.RowID, oidText)
	want(t, &ev, event.Route, "orders")
	if ev.Fields[event.Execution] != nil || string(ev.Extra[0]) != "0" {
		t.Errorf("execution %q, extra %q", ev.Fields[event.Execution], ev.Extra)
	}
}

func TestNothingOfTheEventBeforeIsLeft(t *testing.T) {
	t.Parallel()
	r := New(Options{Schema: forze(t), Extra: []string{"attempts"}, Format: bsonjson.Options{Format: bsonjson.BSON}, MaxPayload: 60})
	ev := event.Event{CommitMicros: commitMicros}
	buf, _ := r.Append(nil, raw(t, with("hlc", 2.5)), &ev)
	if _, out := r.Append(buf, raw(t, bson.D{{Key: "_id", Value: int32(1)}}), &ev); out != Publish || ev.Refused != nil || len(ev.Headers) != 0 || ev.Extra[0] != nil || ev.Fields[event.Route] != nil {
		t.Errorf("%v, event %+v", out, ev)
	}
	want(t, &ev, event.RowID, `{"$numberInt":"1"}`)
}
