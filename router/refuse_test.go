package router

import (
	"errors"
	"strings"
	"testing"

	"github.com/walrelay/walrelay/event"
)

func TestRefusedEventStillMakesADeadLetter(t *testing.T) {
	t.Parallel()
	routes := []Route{
		{Match: "orders"},
		{Match: "tomb", NullPayload: NullTombstone},
		{Match: "tenant", Topic: "t.{tenant}"},
		{Match: "json", Envelope: EnvelopeJSON},
		{Match: "ce", Envelope: EnvelopeCloudEvents},
		{Match: "plain", Encryption: EncryptionNone},
		{Match: "sealed", Encryption: EncryptionEndToEnd},
		{Match: "x.*"},
		{Match: "dot", Topic: "{type}"},
	}
	set := func(f event.Field, v string) func(*event.Event) {
		return func(ev *event.Event) { ev.Fields[f] = []byte(v) }
	}
	null := func(f event.Field) func(*event.Event) { return func(ev *event.Event) { ev.Fields[f] = nil } }
	for _, c := range []struct {
		name   string
		change []func(*event.Event)
		class  event.Class
		anchor event.Anchor
		says   string
		topic  string
	}{
		{"no match", []func(*event.Event){set(event.Route, "other")}, event.Poison, AnchorRoute, `route "other" matches none of the 9 routes`, ""},
		{"prefix without dot", []func(*event.Event){set(event.Route, "x")}, event.Poison, AnchorRoute, `route "x" matches none`, ""},
		{"null route", []func(*event.Event){null(event.Route)}, event.Poison, AnchorRoute, "route is NULL", ""},
		{"empty route", []func(*event.Event){set(event.Route, "")}, event.Poison, AnchorRoute, "route is empty", ""},
		{"huge route", []func(*event.Event){set(event.Route, strings.Repeat("r", 1<<20))}, event.Poison, AnchorRoute, "… (1048576 bytes)", ""},
		{"dot", []func(*event.Event){set(event.Route, "dot"), set(event.Type, ".")}, event.Poison, AnchorTopic, `topic "." is a name that Kafka refuses`, ""},
		{"two dots", []func(*event.Event){set(event.Route, "dot"), set(event.Type, "..")}, event.Poison, AnchorTopic, `topic ".." is a name`, ""},
		{"space in topic", []func(*event.Event){set(event.Route, "x.a b")}, event.Poison, AnchorTopic, `topic "x.a b" contains ' '`, ""},
		{"long topic", []func(*event.Event){set(event.Route, "x."+strings.Repeat("a", 248))}, event.Poison, AnchorTopic, "name of 250 characters: Kafka allows 249", ""},
		{"no tenant", []func(*event.Event){set(event.Route, "tenant")}, event.Poison, AnchorTopic, `needs a value for {tenant}`, ""},
		{"null payload", []func(*event.Event){null(event.Payload)}, event.Poison, AnchorPayload, "payload is NULL", "orders"},
		{"elided", []func(*event.Event){null(event.Payload), func(ev *event.Event) { ev.Elided = 3_000_000 }}, event.Poison, AnchorTooLarge, "the payload of 3000000 bytes is larger than the max_event_bytes of its source", "orders"},
		{"elided tombstone", []func(*event.Event){set(event.Route, "tomb"), null(event.Payload), func(ev *event.Event) { ev.Elided = 1 }}, event.Poison, AnchorTooLarge, "larger than the max_event_bytes", "tomb"},
		{"not json", []func(*event.Event){set(event.Route, "json"), set(event.Payload, "{")}, event.Poison, AnchorPayload, "is not JSON", "json"},
		{"empty is not json", []func(*event.Event){set(event.Route, "json"), set(event.Payload, "")}, event.Poison, AnchorPayload, "payload of 0 bytes is not JSON", "json"},
		{"json with a broken key", []func(*event.Event){set(event.Route, "json"), set(event.Key, "\xff")}, event.Poison, AnchorField, `key "\xff" is not UTF-8`, "json"},
		{"no type", []func(*event.Event){set(event.Route, "ce"), null(event.Type)}, event.Poison, AnchorField, "type is NULL or empty", "ce"},
		{"no id", []func(*event.Event){null(event.EventID)}, event.Poison, AnchorField, "event_id is NULL or empty", "orders"},
		{"negative hlc", []func(*event.Event){set(event.HLC, "-5")}, event.Poison, AnchorField, `hlc is unusable: "-5"`, "orders"},
		{"hlc text", []func(*event.Event){set(event.HLC, "001700000000000.00003")}, event.Poison, AnchorField, "hlc is unusable", "orders"},
		{"key", []func(*event.Event){set(event.Key, "a\xff")}, event.Poison, AnchorField, "is not UTF-8, which stops forze consumers", "orders"},
		{"header", []func(*event.Event){func(ev *event.Event) { ev.Headers = []event.Header{{Key: "h", Value: []byte{0xff}}} }}, event.Poison, AnchorField, "value of header h is not UTF-8", "orders"},
		{"header name", []func(*event.Event){func(ev *event.Event) { ev.Headers = []event.Header{{Key: "\xff"}} }}, event.Poison, AnchorField, `name "\xff" is not UTF-8`, "orders"},
		{"ciphertext", []func(*event.Event){set(event.Route, "plain"), set(event.Payload, "{ \"__fz_enc__\" : \"eA==\"}")}, event.Halt, AnchorEncryption, "is encrypted, but the route declares encryption: none", "plain"},
		{"plain text", []func(*event.Event){set(event.Route, "sealed")}, event.Halt, AnchorEncryption, "is not encrypted", "sealed"},
		{"halt is graver", []func(*event.Event){set(event.Route, "sealed"), set(event.HLC, "x")}, event.Halt, AnchorEncryption, "is not encrypted", "sealed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := mustNew(t, Options{Source: "src", Schema: schema(t, event.Forze), Routes: routes})
			ev := fullEvent()
			ev.Fields[event.Tenant] = nil
			for _, change := range c.change {
				change(&ev)
			}
			rec, err := route(r, &ev)
			var e *event.Error
			if !errors.As(err, &e) {
				t.Fatalf("got error %v, want an event.Error", err)
			}
			if e.Class != c.class || e.Anchor != c.anchor || !strings.Contains(e.What, c.says) {
				t.Errorf("got %v, %s: %s\nwant %v, %s: …%s…", e.Class, e.Anchor, e.What, c.class, c.anchor, c.says)
			}
			if len(e.What) > 400 {
				t.Errorf("the sentence has %d bytes", len(e.What))
			}
			if (e.Class == event.Halt) != (e.Remedy != "") {
				t.Errorf("%v with remedy %q", e.Class, e.Remedy)
			}
			if rec.Topic != c.topic {
				t.Errorf("topic: got %q, want %q", rec.Topic, c.topic)
			}
			if string(rec.Key) != string(ev.Fields[event.Key]) || rec.Hash != hash(rec.Key) {
				t.Errorf("key: got %q", rec.Key)
			}
			if string(rec.Value) != string(ev.Fields[event.Payload]) {
				t.Errorf("value: got %q", rec.Value)
			}
			if rec.Millis != 1_800_000_000_123 || string(rec.Origin.EventID) != string(ev.Fields[event.EventID]) {
				t.Errorf("got %d ms, origin %+v", rec.Millis, rec.Origin)
			}
			if len(ev.Fields[event.Type]) > 0 && headerText(&rec, headerForzeType) != string(ev.Fields[event.Type]) || headerText(&rec, headerForzeCorrelation) != corrA {
				t.Errorf("headers: got\n%s", headerLines(&rec))
			}
		})
	}
}
