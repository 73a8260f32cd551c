package stage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"

	"github.com/walrelay/walrelay/hlc"
)

func at(ms int64) func() time.Time { return func() time.Time { return time.UnixMilli(ms) } }

func newBuffer(limit int) *Buffer {
	now := at(1_700_000_000_000)
	return NewBuffer(hlc.New(now, 0), now, limit)
}

func id(n int) uuid.UUID { return uuid.MustParse(fmt.Sprintf("0198f3a0-0000-7000-8000-%012x", n)) }

// drain is a flush that succeeds.
func drain(t *testing.T, b *Buffer) (all []Staged) {
	t.Helper()
	if err := b.Flush(func(events []Staged) error {
		all = append(all, events...)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestStagingFixesWhatAnEventSays(t *testing.T) {
	t.Parallel()
	b := newBuffer(0)
	ctx := WithIdentity(context.Background(), Identity{Tenant: id(1), Correlation: id(2)})
	ctx = WithIdentity(ctx, Identity{Execution: id(3), Causation: id(4), Correlation: id(5)})
	ctx = trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{0x0a, 15: 0x9c}, SpanID: trace.SpanID{0xb7, 7: 0x31}, TraceFlags: trace.FlagsSampled,
	}))
	type order struct {
		Total string    `json:"total"`
		By    uuid.UUID `json:"by"`
		Note  string    `json:"note"`
	}
	first, err := b.Stage(ctx, Event{Route: "orders", Type: "OrderPlaced", Key: "order-1", Payload: order{"19.99", id(9), "a < b & c"}, AggregateVersion: 7})
	if err != nil {
		t.Fatal(err)
	}
	given := Event{
		Route: "orders", Type: "OrderPaid", Payload: json.RawMessage(`{ "n": 1e400 }`), ID: id(6), Identity: Identity{Causation: id(7)}, Traceparent: "00-x",
		OccurredAt: time.Date(2026, 6, 1, 14, 0, 0, 7999, time.FixedZone("", 7200)),
	}
	second, err := b.Stage(ctx, given)
	if err != nil {
		t.Fatal(err)
	}
	if first.ID.Version() != 7 || first.Stamp.String() != "001700000000000.00000" || !first.OccurredAt.Equal(time.UnixMilli(1_700_000_000_000)) || first.AggregateVersion != 7 {
		t.Errorf("made %s, %s, %s, version %d", first.ID, first.Stamp, first.OccurredAt, first.AggregateVersion)
	}
	if want := (Identity{Tenant: id(1), Execution: id(3), Correlation: id(5), Causation: id(4)}); first.Identity != want {
		t.Errorf("identity %v, want that of the context, the inner before the outer: %v", first.Identity, want)
	}
	if want := "00-0a00000000000000000000000000009c-b700000000000031-01"; first.Traceparent != want {
		t.Errorf("traceparent %q, want %q", first.Traceparent, want)
	}
	if want := `{"total":"19.99","by":"0198f3a0-0000-7000-8000-000000000009","note":"a < b & c"}`; string(first.Body) != want || first.Payload != nil {
		t.Errorf("body %s, payload %v, want %s and nil", first.Body, first.Payload, want)
	}
	if second.ID != id(6) || second.Stamp != first.Stamp+1 || string(second.Body) != `{ "n": 1e400 }` || second.Traceparent != "00-x" ||
		second.Causation != id(7) || second.Tenant != id(1) {
		t.Errorf("what was given is %+v", second)
	}
	if want := time.Date(2026, 6, 1, 12, 0, 0, 7000, time.UTC); second.OccurredAt != want {
		t.Errorf("occurred at %s, want %s", second.OccurredAt, want)
	}
	if none := IdentityOf(context.Background()); none != (Identity{}) {
		t.Errorf("a context without one has identity %v", none)
	}
}

func TestRawPayloadIsNoLongerTheCallers(t *testing.T) {
	t.Parallel()
	b, raw := newBuffer(0), json.RawMessage(`{"a":1}`)
	s, err := b.Stage(context.Background(), Event{Route: "r", Type: "t", Payload: raw})
	if err != nil {
		t.Fatal(err)
	}
	raw[5] = '2'
	if string(s.Body) != `{"a":1}` {
		t.Errorf("body %s", s.Body)
	}
}

func TestWhatCannotBeWrittenIsRefusedBeforeItSpoilsATransaction(t *testing.T) {
	t.Parallel()
	good := Event{Route: "r", Type: "t", Payload: map[string]int{}}
	for want, change := range map[string]func(*Event){
		"route is empty":                     func(e *Event) { e.Route = "" },
		"type is empty":                      func(e *Event) { e.Type = "" },
		"route is not UTF-8":                 func(e *Event) { e.Route = "\xff" },
		"key holds a NUL":                    func(e *Event) { e.Key = "a\x00" },
		"traceparent is not UTF-8":           func(e *Event) { e.Traceparent = "\xc0\x80" },
		"version -1 is negative":             func(e *Event) { e.AggregateVersion = -1 },
		"in the year 10000":                  func(e *Event) { e.OccurredAt = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
		"in the year 0":                      func(e *Event) { e.OccurredAt = time.Date(0, 12, 31, 0, 0, 0, 0, time.UTC) },
		"cannot be made JSON":                func(e *Event) { e.Payload = map[string]float64{"a": math.NaN()} },
		"begins with '['":                    func(e *Event) { e.Payload = []int{1} },
		"begins with 'n'":                    func(e *Event) { e.Payload = nil },
		`begins with '"'`:                    func(e *Event) { e.Payload = []byte(`{"a": 1}`) },
		"but no JSON":                        func(e *Event) { e.Payload = json.RawMessage(`{"a": 1`) },
		"payload is not UTF-8":               func(e *Event) { e.Payload = json.RawMessage("{\"a\": \"\xff\"}") },
		"U+0000 at byte 7":                   func(e *Event) { e.Payload = json.RawMessage(`{"a": "\u0000"}`) },
		"U+0000 at byte 14":                  func(e *Event) { e.Payload = map[string]string{"secret": "abc\x00"} },
		"half of a surrogate pair near byte": func(e *Event) { e.Payload = json.RawMessage(`{"a": "\ud800"}`) },
	} {
		b, e := newBuffer(0), good
		change(&e)
		_, err := b.Stage(context.Background(), e)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want one that says %q", err, want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%v shows the payload", err)
		}
		if b.Len() != 0 {
			t.Errorf("%s: the event is in the buffer", want)
		}
	}
	for _, m := range []Message{{}, {Route: "a/b"}, {Route: "a", Key: "\x00"}, {Route: "\xff"}} {
		if m.Check() == nil {
			t.Errorf("message %+v passes", m)
		}
	}
	if err := (&Message{Route: "a", Key: "b/c"}).Check(); err != nil {
		t.Error(err)
	}
}

// What only one database cannot hold, its package refuses, when all else is fixed.
func TestPackageOfADatabaseRefusesWhatItCannotHold(t *testing.T) {
	t.Parallel()
	tooBig := errors.New("too big")
	var seen []Staged
	b := newBuffer(0).Checked(func(s *Staged) error {
		seen = append(seen, *s)
		if len(s.Body) > 10 {
			return tooBig
		}
		return nil
	})
	big := Event{Route: "r", Type: "t", Payload: map[string]string{"secret": "xxxxxxxxxx"}}
	if _, err := b.Stage(context.Background(), big); !errors.Is(err, tooBig) || !strings.Contains(err.Error(), `type "t"`) || b.Len() != 0 {
		t.Errorf("%v, %d in the buffer", err, b.Len())
	}
	s, err := b.Stage(context.Background(), Event{Route: "r", Type: "t", Payload: struct{}{}})
	if err != nil || b.Len() != 1 {
		t.Fatal(err)
	}
	if s.Stamp.String() != "001700000000000.00000" {
		t.Errorf("stamp %s: what was refused took one", s.Stamp)
	}
	if last := seen[1]; last.ID != s.ID || last.OccurredAt != s.OccurredAt || string(last.Body) != "{}" {
		t.Errorf("it was shown %+v, staged is %+v", last, s)
	}
}

func TestFlushThatSucceedsEmptiesTheBufferAndOneThatFailsDoesNot(t *testing.T) {
	t.Parallel()
	b, broken := newBuffer(0), errors.New("broken")
	for range 3 {
		if _, err := b.Stage(context.Background(), Event{Route: "r", Type: "t", Payload: struct{}{}}); err != nil {
			t.Fatal(err)
		}
	}
	var tried []Staged
	if err := b.Flush(func(e []Staged) error { tried = append(tried, e...); return broken }); !errors.Is(err, broken) || b.Len() != 3 {
		t.Fatalf("%v, and %d events are left", err, b.Len())
	}
	again := drain(t, b)
	for i, s := range again {
		if s.ID != tried[i].ID || s.Stamp != tried[i].Stamp {
			t.Errorf("event %d has id %s and stamp %s the second time, %s and %s the first", i, s.ID, s.Stamp, tried[i].ID, tried[i].Stamp)
		}
	}
	if b.Len() != 0 {
		t.Errorf("%d events are left", b.Len())
	}
	if err := b.Flush(func([]Staged) error { return broken }); err != nil {
		t.Errorf("nothing was staged, and write was called: %v", err)
	}
}

func TestMoreEventsThanAllowedAreRefusedAndKept(t *testing.T) {
	t.Parallel()
	for limit, allowed := range map[int]int{0: 500, 2: 2} {
		b := newBuffer(limit)
		for range allowed + 1 {
			if _, err := b.Stage(context.Background(), Event{Route: "r", Type: "t", Payload: struct{}{}}); err != nil {
				t.Fatal(err)
			}
		}
		called := false
		if err := b.Flush(func([]Staged) error { called = true; return nil }); !errors.Is(err, ErrTooMany) || called || b.Len() != allowed+1 {
			t.Errorf("limit %d: %v, written %t, %d left", limit, err, called, b.Len())
		}
	}
}

func TestEventsOfConcurrentStagersAreInTheOrderOfTheirStamps(t *testing.T) {
	t.Parallel()
	b := NewBuffer(hlc.New(time.Now, 0), time.Now, 10_000)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				if _, err := b.Stage(context.Background(), Event{Route: "r", Type: "t", Payload: struct{}{}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	all := drain(t, b)
	for i := range all {
		if i > 0 && all[i].Stamp <= all[i-1].Stamp {
			t.Fatalf("event %d has stamp %s, the one before it %s", i, all[i].Stamp, all[i-1].Stamp)
		}
	}
	if len(all) != 2000 {
		t.Errorf("%d events", len(all))
	}
}

// Battery G's wiring: what is staged in reaction to an event is stamped above it,
// though the wall clock is behind; what is refused, or cannot be read, changes nothing.
func TestReactionIsStampedAboveItsCause(t *testing.T) {
	t.Parallel()
	now := at(1_700_000_000_000)
	clock := hlc.New(now, 0)
	b := NewBuffer(clock, now, 0)
	ahead, err := hlc.Parse("001700000200000.00003")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clock.Observe(ahead + 1<<40); err == nil {
		t.Error("a stamp of another year was taken in")
	}
	if _, err := hlc.Parse("10.xyz"); err == nil {
		t.Error("10.xyz is no stamp")
	}
	var stamps []string
	for range 2 {
		s, err := b.Stage(context.Background(), Event{Route: "r", Type: "t", Payload: struct{}{}})
		if err != nil {
			t.Fatal(err)
		}
		stamps = append(stamps, s.Stamp.String())
		if _, err := clock.Observe(ahead); err != nil {
			t.Fatal(err)
		}
	}
	if want := "[001700000000000.00000 001700000200000.00005]"; fmt.Sprint(stamps) != want {
		t.Errorf("stamps %s, want %s", stamps, want)
	}
}
