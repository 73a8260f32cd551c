package router

import (
	"strings"
	"testing"

	"github.com/walrelay/walrelay/event"
)

const (
	idA      = "0198f3a0-0000-7000-8000-000000000001"
	tenantA  = "7d444840-9dc0-11d1-b245-5ffdce74fad2"
	corrA    = "11111111-1111-4111-8111-111111111111"
	causeA   = "22222222-2222-4222-8222-222222222222"
	execA    = "33333333-3333-4333-8333-333333333333"
	traceA   = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	payloadA = `{"a": 9007199254740993}`
)

func schema(tb testing.TB, p event.Preset) event.Schema {
	tb.Helper()
	s, err := event.NewSchema(p, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func mustNew(tb testing.TB, o Options) *Router {
	tb.Helper()
	r, err := New(o)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func fields(pairs map[event.Field]string) (f [event.NumFields][]byte) {
	for k, v := range pairs {
		f[k] = []byte(v)
	}
	return f
}

// bareEvent has nothing that may be missing.
func bareEvent() event.Event {
	return event.Event{
		Fields: fields(map[event.Field]string{
			event.EventID: idA, event.Route: "orders", event.Type: "order.placed", event.Payload: payloadA,
			event.OccurredAt: "2026-06-01 12:00:00+00",
		}),
		Relation: "public.outbox", Commit: event.AtLSN(0x16B374D848), Ordinal: 3, CommitMicros: 1_800_000_000_123_456,
	}
}

// fullEvent has everything.
func fullEvent() event.Event {
	ev := bareEvent()
	for f, v := range map[event.Field]string{
		event.Key: "order-42", event.Tenant: tenantA, event.Correlation: corrA, event.Causation: causeA,
		event.Execution: execA, event.HLC: "111411200000000003", event.Traceparent: traceA,
		event.OccurredAt: "2026-06-01 15:00:00.000007+03",
	} {
		ev.Fields[f] = []byte(v)
	}
	return ev
}

func route(r *Router, ev *event.Event) (event.Record, error) {
	var rec event.Record
	_, err := r.Route(ev, &rec, nil)
	return rec, err
}

func headerText(rec *event.Record, name string) string {
	for _, h := range rec.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return "(absent)"
}

// headerLines shows the headers in their order.
func headerLines(rec *event.Record) string {
	var b strings.Builder
	for _, h := range rec.Headers {
		b.WriteString(h.Key + "=" + string(h.Value) + "\n")
	}
	return b.String()
}
