package router

import (
	"fmt"
	"regexp"
	"testing"
	"unicode/utf8"

	"github.com/walrelay/walrelay/event"
)

var legalTopic = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`)

// Case C73: memory stays flat however many names the data invents.
func TestRememberedTopicsNeverExceedTheirBound(t *testing.T) {
	t.Parallel()
	r := mustNew(t, Options{Source: "s", Schema: schema(t, event.Forze)})
	for i := range maxTopics + 500 {
		ev := bareEvent()
		want := fmt.Sprintf("topic-%d", i)
		ev.Fields[event.Route] = []byte(want)
		rec, err := route(r, &ev)
		if err != nil || rec.Topic != want {
			t.Fatalf("got %q, error %v, want %q", rec.Topic, err, want)
		}
	}
	if len(r.topics) != maxTopics {
		t.Errorf("%d names are remembered, want %d", len(r.topics), maxTopics)
	}
	for range 3 {
		ev := bareEvent()
		ev.Fields[event.Route] = []byte("a b")
		if _, err := route(r, &ev); err == nil {
			t.Error("an illegal name was accepted")
		}
	}
}

// A value of megabytes is refused before it is copied.
func TestHugeRouteNeverGrowsTheRouter(t *testing.T) {
	t.Parallel()
	r := mustNew(t, Options{Source: "s", Schema: schema(t, event.Forze)})
	ev := bareEvent()
	ev.Fields[event.Route] = make([]byte, 1<<20)
	if _, err := route(r, &ev); err == nil {
		t.Error("accepted")
	}
	if cap(r.topicBuf) > 1024 {
		t.Errorf("the router keeps %d bytes", cap(r.topicBuf))
	}
}

func FuzzRouteNeverPanicsAndItsTopicIsLegal(f *testing.F) {
	f.Add("orders", "key", "type", "tenant", `{"a":1}`, "2026-06-01 12:00:00+00", "111411200000000003", uint8(0))
	f.Add("a.b", "", "", "", "null", "infinity", "-1", uint8(5))
	f.Add("..", "\xff", "t", "\x00", "", "0044-03-15 12:00:00+00 BC", "x", uint8(255))
	presets := []event.Preset{event.Forze, event.Debezium, event.Basic}
	envelopes := []Envelope{EnvelopeNone, EnvelopeCloudEvents, EnvelopeJSON}
	var routers []*Router
	for _, p := range presets {
		s := schema(f, p)
		s.Columns[event.Tenant] = "tenant_id"
		for _, e := range envelopes {
			routers = append(routers, mustNew(f, Options{Source: "s", Schema: s, Position: true, Routes: []Route{
				{Match: "*", Envelope: e, Timestamp: TimestampOccurredAt},
				{Match: "a.*", Topic: "x-{tenant}{type}", Envelope: e, KeyFallback: FallbackNone, NullPayload: NullTombstone},
			}}))
		}
	}
	f.Fuzz(func(t *testing.T, name, key, typ, tenant, payload, at, stamp string, bits uint8) {
		ev := bareEvent()
		for field, v := range map[event.Field]string{
			event.Route: name, event.Key: key, event.Type: typ, event.Tenant: tenant, event.Payload: payload,
			event.OccurredAt: at, event.HLC: stamp,
		} {
			ev.Fields[field] = []byte(v)
		}
		if bits&1 != 0 {
			ev.Fields[event.Payload] = nil
		}
		if bits&2 != 0 {
			ev.Fields[event.HLC] = nil
		}
		ev.Headers = []event.Header{{Key: tenant, Value: []byte(key)}}
		for _, r := range routers {
			rec, err := route(r, &ev)
			if rec.Topic != "" && (!legalTopic.MatchString(rec.Topic) || rec.Topic == "." || rec.Topic == "..") {
				t.Fatalf("illegal topic %q", rec.Topic)
			}
			if err == nil && rec.Topic == "" {
				t.Fatal("no topic and no error")
			}
			if (rec.Key == nil) != (rec.Hash == 0 && rec.Spread) || rec.Millis < 0 {
				t.Fatalf("key %q, hash %d, spread %v, %d ms", rec.Key, rec.Hash, rec.Spread, rec.Millis)
			}
			if err == nil && r.preset == event.Forze && !utf8.ValidString(string(rec.Key)+headerLines(&rec)) {
				t.Fatalf("a forze consumer cannot read %q", headerLines(&rec))
			}
		}
	})
}
