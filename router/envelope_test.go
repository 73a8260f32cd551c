package router

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/walrelay/walrelay/event"
	"pgregory.net/rapid"
)

// What a consumer's JSON parser reads is what the row holds, whatever that is.
func TestEnvelopeSaysExactlyWhatTheRowHolds(t *testing.T) {
	t.Parallel()
	s := schema(t, event.Debezium)
	s.Columns[event.Version] = "version"
	r := mustNew(t, Options{Source: "s", Schema: s, Routes: []Route{{Match: "*", Topic: "t", Envelope: EnvelopeJSON}}})
	text := rapid.OneOf(rapid.String(), rapid.StringMatching("[\x00-\x20\"\\\\/<>&\x7f\u2028😀]{0,8}"))
	rapid.Check(t, func(t *rapid.T) {
		ev := bareEvent()
		want := map[string]any{"eventId": idA, "occurredAt": "2026-06-01T12:00:00+00:00", "data": map[string]any{"a": 9007199254740993.0}}
		for f, member := range map[event.Field]string{event.Route: "aggregateType", event.Key: "aggregateId", event.Type: "eventType"} {
			v := text.Draw(t, member)
			if v == "" && f == event.Route {
				v = "r"
			}
			ev.Fields[f] = []byte(v)
			if v != "" {
				want[member] = v
			}
		}
		rec, err := route(r, &ev)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(rec.Value, &got); err != nil {
			t.Fatalf("%s: %v", rec.Value, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

func TestVersionIsANumberOnlyWhereJSONHasOne(t *testing.T) {
	t.Parallel()
	r := mustNew(t, Options{Source: "s", Schema: schema(t, event.Basic), Routes: []Route{{Match: "*", Envelope: EnvelopeJSON}}})
	for version, want := range map[string]string{
		"7": `7`, "0": `0`, "-1": `-1`, "123456789012345678901234567890": `123456789012345678901234567890`,
		"007": `"007"`, "-": `"-"`, "1.5": `"1.5"`, "v2": `"v2"`, "-01": `"-01"`, "": "",
	} {
		ev := bareEvent()
		ev.Fields[event.Version] = []byte(version)
		rec, err := route(r, &ev)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]json.RawMessage
		if err := json.Unmarshal(rec.Value, &got); err != nil || string(got["aggregateVersion"]) != want {
			t.Errorf("%q became %s in %s, error %v", version, got["aggregateVersion"], rec.Value, err)
		}
	}
}
