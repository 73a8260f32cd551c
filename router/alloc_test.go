package router

import (
	"testing"

	"github.com/walrelay/walrelay/event"
)

func TestRouteNeverAllocatesOnTheCommonPath(t *testing.T) {
	for _, c := range []struct {
		name string
		o    Options
	}{
		{"forze", Options{Schema: schema(t, event.Forze)}},
		{"forze, all there is", Options{Schema: schema(t, event.Forze), Position: true, Headers: []Header{{"v", "v"}}, Routes: []Route{
			{Match: "x.*", Topic: "y"}, {Match: "*", Topic: "t.{tenant}.{route}", Timestamp: TimestampOccurredAt, Envelope: EnvelopeCloudEvents},
		}}},
		{"debezium", Options{Schema: schema(t, event.Debezium)}},
		{"json envelope", Options{Schema: schema(t, event.Basic), Routes: []Route{{Match: "orders", Envelope: EnvelopeJSON}}}},
	} {
		c.o.Source = "src"
		r := mustNew(t, c.o)
		ev := fullEvent()
		ev.Extra = [][]byte{[]byte("1")}
		rec := event.Record{Headers: make([]event.Header, 0, 24)}
		scratch := make([]byte, 0, 1024)
		if n := testing.AllocsPerRun(500, func() {
			if _, err := r.Route(&ev, &rec, scratch); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations per event", c.name, n)
		}
	}
}

func BenchmarkRoute(b *testing.B) {
	for _, c := range []struct {
		name string
		p    event.Preset
		rt   Route
	}{
		{"forze", event.Forze, Route{Match: "*"}},
		{"forze-template", event.Forze, Route{Match: "*", Topic: "{tenant}.{route}"}},
		{"debezium", event.Debezium, Route{Match: "*"}},
		{"cloudevents", event.Basic, Route{Match: "*", Envelope: EnvelopeCloudEvents}},
		{"json", event.Basic, Route{Match: "*", Envelope: EnvelopeJSON}},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := mustNew(b, Options{Source: "src", Schema: schema(b, c.p), Routes: []Route{c.rt}})
			ev := fullEvent()
			rec := event.Record{Headers: make([]event.Header, 0, 16)}
			scratch := make([]byte, 0, 1024)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Route(&ev, &rec, scratch); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
