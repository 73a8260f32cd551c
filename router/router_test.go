package router

import (
	"fmt"
	"strings"
	"testing"

	"github.com/walrelay/walrelay/event"
)

// Scenarios E1–E3 of the outbox contract and their like for the other presets.
func TestRecordIsExactlyAsDocumented(t *testing.T) {
	t.Parallel()
	extra := func(ev event.Event) event.Event {
		ev.Extra = [][]byte{[]byte("7"), nil, {}}
		ev.Headers = []event.Header{
			{Key: "x-own", Value: []byte("own")},
			{Key: "forze_tenant_id", Value: []byte("forged")},
			{Key: "forze_enqueued_at", Value: []byte("forged")},
			{Key: "id", Value: []byte("id?")},
			{Key: "version", Value: []byte("8")},
			{Key: "walrelay_position", Value: []byte("forged")},
		}
		return ev
	}
	columns := []Header{{"version", "version"}, {"none", "none"}, {"empty", "empty"}}
	for _, c := range []struct {
		name    string
		o       Options
		ev      event.Event
		topic   string
		key     string
		headers string
		value   string
	}{
		{
			name: "forze, full row", o: Options{Schema: schema(t, event.Forze)}, ev: fullEvent(),
			topic: "orders", key: "order-42", value: payloadA,
			headers: "forze_event_id=" + idA + "\nforze_occurred_at=2026-06-01T12:00:00.000007+00:00\n" +
				"forze_correlation_id=" + corrA + "\nforze_causation_id=" + causeA + "\nforze_execution_id=" + execA +
				"\nforze_tenant_id=" + tenantA + "\nforze_hlc=001700000000000.00003\ntraceparent=" + traceA +
				"\nforze_type=order.placed\n",
		},
		{
			name: "forze, bare row", o: Options{Schema: schema(t, event.Forze)}, ev: bareEvent(),
			topic: "orders", key: idA, value: payloadA,
			headers: "forze_event_id=" + idA + "\nforze_occurred_at=2026-06-01T12:00:00+00:00\nforze_type=order.placed\n",
		},
		{
			name: "forze, more headers", ev: extra(bareEvent()),
			o:     Options{Schema: schema(t, event.Forze), Headers: columns, Position: true},
			topic: "orders", key: idA, value: payloadA,
			headers: "forze_event_id=" + idA + "\nforze_occurred_at=2026-06-01T12:00:00+00:00\nversion=7\nempty=\n" +
				"x-own=own\nid=id?\nwalrelay_position=src:16/B374D848:3\nforze_type=order.placed\n",
		},
		{
			name: "debezium", o: Options{Schema: schema(t, event.Debezium)}, ev: fullEvent(),
			topic: "outbox.event.orders", key: "order-42", value: payloadA,
			headers: "id=" + idA + "\ntraceparent=" + traceA + "\ntype=order.placed\n",
		},
		{
			name: "debezium, more headers", ev: extra(bareEvent()),
			o:     Options{Schema: schema(t, event.Debezium), Headers: columns},
			topic: "outbox.event.orders", key: idA, value: payloadA,
			headers: "id=" + idA + "\nversion=7\nempty=\nx-own=own\nforze_tenant_id=forged\nforze_enqueued_at=forged\ntype=order.placed\n",
		},
		{
			name: "basic", o: Options{Schema: schema(t, event.Basic)}, ev: bareEvent(),
			topic: "orders", key: idA, value: payloadA, headers: "id=" + idA + "\ntype=order.placed\n",
		},
		{
			name: "cloudevents", o: Options{Schema: schema(t, event.Basic), Routes: []Route{{Match: "orders", Envelope: EnvelopeCloudEvents}}},
			ev: bareEvent(), topic: "orders", key: idA, value: payloadA,
			headers: "id=" + idA + "\nce_specversion=1.0\nce_id=" + idA + "\nce_type=order.placed\nce_source=/walrelay/src\n" +
				"ce_time=2026-06-01T12:00:00+00:00\ntype=order.placed\n",
		},
		{
			name: "json envelope", o: Options{Schema: schema(t, event.Basic), Routes: []Route{{Match: "orders", Envelope: EnvelopeJSON}}},
			ev: fullEvent(), topic: "orders", key: "order-42",
			headers: "id=" + idA + "\ntraceparent=" + traceA + "\ntype=order.placed\n",
			value: `{"eventId":"` + idA + `","eventType":"order.placed","aggregateType":"orders","aggregateId":"order-42",` +
				`"occurredAt":"2026-06-01T12:00:00.000007+00:00","data":{"a": 9007199254740993}}`,
		},
		{
			name: "template", ev: fullEvent(), key: "order-42", value: payloadA,
			o:     Options{Schema: schema(t, event.Forze), Routes: []Route{{Match: "*", Topic: "shop.{tenant}.{route}-{type}"}}},
			topic: "shop." + tenantA + ".orders-order.placed",
			headers: "forze_event_id=" + idA + "\nforze_occurred_at=2026-06-01T12:00:00.000007+00:00\n" +
				"forze_correlation_id=" + corrA + "\nforze_causation_id=" + causeA + "\nforze_execution_id=" + execA +
				"\nforze_tenant_id=" + tenantA + "\nforze_hlc=001700000000000.00003\ntraceparent=" + traceA +
				"\nforze_type=order.placed\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.o.Source = "src"
			rec, err := route(mustNew(t, c.o), &c.ev)
			if err != nil {
				t.Fatal(err)
			}
			if rec.Topic != c.topic {
				t.Errorf("topic: got %q, want %q", rec.Topic, c.topic)
			}
			if string(rec.Key) != c.key || rec.Hash != hash(rec.Key) || rec.Spread {
				t.Errorf("key: got %q, hash %d, spread %v, want %q", rec.Key, rec.Hash, rec.Spread, c.key)
			}
			if got := headerLines(&rec); got != c.headers {
				t.Errorf("headers: got\n%swant\n%s", got, c.headers)
			}
			if string(rec.Value) != c.value {
				t.Errorf("value: got\n%s\nwant\n%s", rec.Value, c.value)
			}
			if rec.Millis != 1_800_000_000_123 || rec.FallbackMillis != rec.Millis {
				t.Errorf("millis: got %d and %d, want the commit time", rec.Millis, rec.FallbackMillis)
			}
			o := rec.Origin
			if o.Source != "src" || o.Relation != "public.outbox" || string(o.EventID) != idA || o.Commit != c.ev.Commit || o.Ordinal != 3 {
				t.Errorf("origin: got %+v", o)
			}
		})
	}
}

// Case C24, and promise P5.
func TestPayloadBytesAreNeverTouched(t *testing.T) {
	t.Parallel()
	for _, p := range []string{
		`{"n": 12345678901234567890}`, `{"d": 0.123456789012345678901234567890}`, "1e400", "1" + strings.Repeat("0", 400),
		`-0.0`, `{"a":1,"a":2}`, `{ "b" :1 , "a": 2}`, `[]`, `null`, `""`, `"\u00e9\ud83d\ude00"`, " {\"a\":1}\n", `"<&>"`,
	} {
		for _, env := range []Envelope{EnvelopeNone, EnvelopeCloudEvents, EnvelopeJSON} {
			r := mustNew(t, Options{Source: "s", Schema: schema(t, event.Forze), Routes: []Route{{Match: "*", Envelope: env}}})
			ev := bareEvent()
			ev.Fields[event.Payload] = []byte(p)
			rec, err := route(r, &ev)
			if err != nil {
				t.Fatal(err)
			}
			got := string(rec.Value)
			if env == EnvelopeJSON {
				_, data, found := strings.Cut(got, `"data":`)
				if !found || !strings.HasSuffix(data, "}") {
					t.Fatalf("no data in %s", got)
				}
				got = strings.TrimSuffix(data, "}")
			}
			if got != p {
				t.Errorf("envelope %s: %q became %q", env, p, got)
			}
		}
	}
	// Bytes that are no text at all, and none.
	for _, p := range [][]byte{{0, 0xff, 0xfe, 0, 0, 0, 7}, {}} {
		ev := bareEvent()
		ev.Fields[event.Payload] = p
		rec, err := route(mustNew(t, Options{Source: "s", Schema: schema(t, event.Debezium)}), &ev)
		if err != nil || rec.Value == nil || string(rec.Value) != string(p) {
			t.Errorf("%x became %x (nil: %v), error %v", p, rec.Value, rec.Value == nil, err)
		}
	}
}

// Case C36.
func TestOnlyNullAndEmptyKeysFallBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key      []byte
		fallback KeyFallback
		want     string
		spread   bool
	}{
		{nil, "", idA, false},
		{[]byte{}, "", idA, false},
		{nil, FallbackEventID, idA, false},
		{nil, FallbackNone, "", true},
		{[]byte{}, FallbackNone, "", true},
		{[]byte(" "), "", " ", false},
		{[]byte(" "), FallbackNone, " ", false},
		{[]byte("\x00"), FallbackNone, "\x00", false},
		{[]byte("e\u0301"), "", "e\u0301", false},
		{[]byte(" é "), "", " é ", false},
	} {
		r := mustNew(t, Options{Source: "s", Schema: schema(t, event.Forze), Routes: []Route{{Match: "*", KeyFallback: c.fallback}}})
		ev := bareEvent()
		ev.Fields[event.Key] = c.key
		rec, err := route(r, &ev)
		if err != nil {
			t.Fatal(err)
		}
		if string(rec.Key) != c.want || rec.Spread != c.spread || (rec.Key == nil) != c.spread {
			t.Errorf("key %q, fallback %q: got %q, spread %v", c.key, c.fallback, rec.Key, rec.Spread)
		}
		if !c.spread && rec.Hash != hash([]byte(c.want)) {
			t.Errorf("key %q: hash %d is not that of the key", c.key, rec.Hash)
		}
	}
}

func TestSpreadKeepsTheKey(t *testing.T) {
	t.Parallel()
	for _, p := range []Partition{PartitionSpread, PartitionNone} {
		ev := fullEvent()
		rec, err := route(mustNew(t, Options{Source: "s", Schema: schema(t, event.Forze), Routes: []Route{{Match: "*", Partition: p}}}), &ev)
		if err != nil || !rec.Spread || string(rec.Key) != "order-42" {
			t.Errorf("%s: got key %q, spread %v, error %v", p, rec.Key, rec.Spread, err)
		}
	}
}

func TestTombstoneOnlyWhereTheRouteAsks(t *testing.T) {
	t.Parallel()
	for _, env := range []Envelope{EnvelopeNone, EnvelopeJSON} {
		r := mustNew(t, Options{Source: "s", Schema: schema(t, event.Debezium), Routes: []Route{{Match: "*", NullPayload: NullTombstone, Envelope: env}}})
		ev := fullEvent()
		ev.Fields[event.Payload] = nil
		rec, err := route(r, &ev)
		if err != nil || rec.Value != nil || string(rec.Key) != "order-42" {
			t.Errorf("%s: got value %q, key %q, error %v", env, rec.Value, rec.Key, err)
		}
		ev.Fields[event.Payload] = []byte("7")
		if rec, err = route(r, &ev); err != nil || rec.Value == nil {
			t.Errorf("%s: got value %q, error %v", env, rec.Value, err)
		}
	}
}

func TestEncryptedPayloadPassesWhereDeclared(t *testing.T) {
	t.Parallel()
	const sealed = `{"__fz_enc__": "eA=="}` // as jsonb prints it
	for _, d := range []Encryption{"", EncryptionForward, EncryptionEndToEnd} {
		ev := bareEvent()
		ev.Fields[event.Payload] = []byte(sealed)
		rec, err := route(mustNew(t, Options{Source: "s", Schema: schema(t, event.Forze), Routes: []Route{{Match: "*", Encryption: d}}}), &ev)
		if err != nil || string(rec.Value) != sealed {
			t.Errorf("%q: got %q, error %v", d, rec.Value, err)
		}
	}
	ev := bareEvent()
	if _, err := route(mustNew(t, Options{Source: "s", Schema: schema(t, event.Forze), Routes: []Route{{Match: "*", Encryption: EncryptionNone}}}), &ev); err != nil {
		t.Error(err)
	}
}

func TestTraceparentOfTheMessagePassesOnlyAlone(t *testing.T) {
	t.Parallel()
	r := mustNew(t, Options{Source: "s", Schema: schema(t, event.Forze)})
	ev := bareEvent()
	ev.Headers = []event.Header{{Key: "traceparent", Value: []byte("theirs")}}
	rec, err := route(r, &ev)
	if err != nil || headerText(&rec, "traceparent") != "theirs" {
		t.Errorf("got %q, error %v", headerText(&rec, "traceparent"), err)
	}
	ev.Fields[event.Traceparent] = []byte(traceA)
	rec, err = route(r, &ev)
	if err != nil || strings.Count(headerLines(&rec), "traceparent") != 1 || headerText(&rec, "traceparent") != traceA {
		t.Errorf("got %s, error %v", headerLines(&rec), err)
	}
}

func TestCloudEventsTimeIsAlwaysRFC3339OrAbsent(t *testing.T) {
	t.Parallel()
	r := mustNew(t, Options{Source: "a b", Schema: schema(t, event.Forze), Routes: []Route{{Match: "*", Envelope: EnvelopeCloudEvents}}})
	ev := bareEvent()
	ev.Fields[event.OccurredAt] = []byte("infinity")
	rec, err := route(r, &ev)
	if err != nil || headerText(&rec, "ce_time") != "(absent)" || headerText(&rec, "forze_occurred_at") != "infinity" ||
		headerText(&rec, "ce_source") != "/walrelay/a%20b" {
		t.Errorf("got\n%serror %v", headerLines(&rec), err)
	}
}

func TestEarlierRecordsSurviveLaterAppendsToScratch(t *testing.T) {
	t.Parallel()
	r := mustNew(t, Options{Source: "s", Schema: schema(t, event.Forze), Position: true, Routes: []Route{{Match: "*", Envelope: EnvelopeJSON}}})
	recs := make([]event.Record, 200)
	want := make([]string, len(recs))
	scratch := make([]byte, 0, 8)
	for i := range recs {
		ev := fullEvent()
		ev.Ordinal = uint32(i)
		ev.Fields[event.Payload] = fmt.Appendf(nil, "%d", i)
		var err error
		if scratch, err = r.Route(&ev, &recs[i], scratch); err != nil {
			t.Fatal(err)
		}
		want[i] = headerLines(&recs[i]) + string(recs[i].Value)
	}
	// Who appends to a value must not reach the bytes of the next one.
	for i := range recs {
		for _, h := range recs[i].Headers {
			_ = append(h.Value, "xxxxxxxx"...)
		}
		_ = append(recs[i].Value, "xxxxxxxx"...)
	}
	for i := range recs {
		if got := headerLines(&recs[i]) + string(recs[i].Value); got != want[i] {
			t.Fatalf("record %d changed from\n%s\nto\n%s", i, want[i], got)
		}
	}
}

func TestRecordOfTheFormerEventNeverShinesThrough(t *testing.T) {
	t.Parallel()
	r := mustNew(t, Options{Source: "s", Schema: schema(t, event.Forze), Routes: []Route{{Match: "orders"}}})
	full, bad, bare := fullEvent(), bareEvent(), bareEvent()
	bad.Fields[event.Route], bad.Fields[event.Payload], bad.Fields[event.EventID] = nil, nil, nil
	var rec event.Record
	if _, err := r.Route(&full, &rec, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Route(&bad, &rec, nil); err == nil || rec.Topic != "" || rec.Key != nil || rec.Value != nil || rec.Hash != 0 {
		t.Errorf("got %+v, error %v", rec, err)
	}
	if _, err := r.Route(&bare, &rec, nil); err != nil {
		t.Fatal(err)
	}
	fresh, _ := route(r, &bare)
	if headerLines(&rec) != headerLines(&fresh) || rec.Topic != fresh.Topic || string(rec.Key) != string(fresh.Key) {
		t.Errorf("got %+v, want %+v", rec, fresh)
	}
}
