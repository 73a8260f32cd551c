package mongostream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/test/mongoserver"
)

func TestMain(m *testing.M) { mongoserver.Main(m) }

// house is a database with an outbox on a real server.
type house struct {
	t      testing.TB
	client *mongo.Client
	opt    Options
	outbox *mongo.Collection
}

func newHouse(t testing.TB, server *mongoserver.Server) *house {
	t.Helper()
	schema, err := event.NewSchema(event.Forze, nil)
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, client: server.Client(t), opt: Options{
		Source: "orders", URL: server.URL(), Database: server.NewDatabase(t), Collection: "outbox", Schema: schema, Holder: "test",
	}.WithDefaults()}
	h.outbox = h.client.Database(h.opt.Database).Collection(h.opt.Collection)
	return h
}

// begin makes the position.
func (h *house) begin() *Record {
	h.t.Helper()
	r, err := Begin(ctx(h.t), h.client, h.opt)
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

func (h *house) record() *Record {
	h.t.Helper()
	r, err := ReadRecord(ctx(h.t), h.client, h.opt)
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

// until asks until a condition holds.
func (h *house) until(what string, met func() bool) {
	h.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !met(); <-tick.C {
		if time.Now().After(deadline) {
			h.t.Fatalf("never: %s", what)
		}
	}
}

// row is an outbox document whose event id and payload are its number.
func row(n int) bson.D {
	return bson.D{
		{Key: "event_id", Value: fmt.Sprint(n)},
		{Key: "outbox_route", Value: "orders"},
		{Key: "event_type", Value: "made"},
		{Key: "payload", Value: bson.D{{Key: "n", Value: n}}},
		{Key: "occurred_at", Value: time.Unix(1, 0)},
		{Key: "status", Value: "pending"},
	}
}

func (h *house) insert(ns ...int) {
	h.t.Helper()
	for _, n := range ns {
		if _, err := h.outbox.InsertOne(ctx(h.t), row(n)); err != nil {
			h.t.Fatal(err)
		}
	}
}

// transaction runs do in one transaction.
func (h *house) transaction(do func(ctx context.Context) error) {
	h.t.Helper()
	session, err := h.client.StartSession()
	if err != nil {
		h.t.Fatal(err)
	}
	defer session.EndSession(ctx(h.t))
	_, err = session.WithTransaction(ctx(h.t), func(ctx context.Context) (any, error) { return nil, do(ctx) })
	if err != nil {
		h.t.Fatal(err)
	}
}

// ctx ends when a test has waited far too long.
func ctx(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// watched is a stream with what its observer heard.
type watched struct {
	*Stream
	t testing.TB

	mu      sync.Mutex
	states  []event.State
	reasons []event.Condition
	ignored map[string]int
	changed chan struct{}
	started []string
	errs    []error

	// of the caller of Next
	pos  event.Position // end of the last complete span
	part int            // events of the span that is not complete yet
	wait context.Context
}

func (h *house) open(change ...func(*Options)) *watched {
	h.t.Helper()
	w := h.openKept(change...)
	h.t.Cleanup(func() { w.close() })
	return w
}

func (h *house) openKept(change ...func(*Options)) *watched {
	h.t.Helper()
	o := h.opt
	for _, c := range change {
		c(&o)
	}
	w := &watched{t: h.t, ignored: map[string]int{}, changed: make(chan struct{})}
	note := func(f func()) {
		w.mu.Lock()
		defer w.mu.Unlock()
		f()
		close(w.changed)
		w.changed = make(chan struct{})
	}
	s, err := Open(o, Observer{
		State: func(st event.State, c event.Condition) {
			note(func() { w.states, w.reasons = append(w.states, st), append(w.reasons, c) })
		},
		Ignored:   func(reason string, n int) { note(func() { w.ignored[reason] += n }) },
		Started:   func(_ event.Position, why string) { note(func() { w.started = append(w.started, why) }) },
		Reconnect: func(err error) { note(func() { w.errs = append(w.errs, err) }) },
	})
	if err != nil {
		h.t.Fatal(err)
	}
	w.Stream = s
	return w
}

func (w *watched) close() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := w.Close(ctx); err != nil {
		w.t.Error(err)
	}
}

// eventually waits until what the observer heard fulfils a condition.
func (w *watched) eventually(what string, met func() bool) {
	w.t.Helper()
	deadline := time.After(patience)
	for {
		w.mu.Lock()
		changed, ok := w.changed, met()
		states, reasons := w.states, w.reasons
		w.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			w.t.Fatalf("never: %s; states %v %v", what, states, reasons)
		}
	}
}

func (w *watched) state() event.State {
	if len(w.states) == 0 {
		return ""
	}
	return w.states[len(w.states)-1]
}

// seen is what the test keeps of an event.
type seen struct {
	id      string
	ordinal uint32
	commit  event.Position
	payload string
	refused error
}

// patience bounds what a test waits for.
const patience = 30 * time.Second

// patience begins a wait that may take several batches; its end is to be called.
func (w *watched) patience(what string) func() {
	ctx, cancel := context.WithTimeoutCause(context.Background(), patience, errors.New("never came: "+what))
	w.wait = ctx
	return func() {
		w.wait = nil
		cancel()
	}
}

// batch takes one batch.
func (w *watched) batch() ([]seen, error) {
	ctx := w.wait
	if ctx == nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.Background(), patience)
		defer cancel()
	}
	b, err := w.Next(ctx)
	if err != nil {
		return nil, err
	}
	defer b.Memory.Release()
	var got []seen
	rest := b.Events
	for _, span := range b.Spans {
		for i := range rest[:span.Events] {
			ev := &rest[i]
			got = append(got, seen{
				id: string(ev.Fields[event.EventID]), ordinal: ev.Ordinal, commit: ev.Commit, payload: string(ev.Fields[event.Payload]), refused: ev.Refused,
			})
		}
		rest = rest[span.Events:]
		w.part += span.Events
		if !span.Done {
			continue
		}
		w.part = 0
		if span.End.Compare(w.pos) < 0 {
			w.t.Errorf("the position went back from %s to %s", w.pos, span.End)
		}
		w.pos = span.End
	}
	if len(rest) > 0 {
		w.t.Errorf("%d events are in no span", len(rest))
	}
	return got, nil
}

// events takes batches until n events have come, and until their last transaction is complete.
func (w *watched) events(n int) []seen {
	w.t.Helper()
	var got []seen
	defer w.patience(fmt.Sprintf("%d events", n))()
	for len(got) < n || w.part > 0 {
		more, err := w.batch()
		if err != nil {
			w.t.Fatalf("after %d of %d events: %v", len(got), n, err)
		}
		got = append(got, more...)
	}
	if len(got) != n {
		w.t.Fatalf("%d events, want %d: %v", len(got), n, ids(got))
	}
	return got
}

// idle takes batches until the position is at or past a place, and wants no event.
func (w *watched) idle(until event.Position) {
	w.t.Helper()
	defer w.patience("position " + until.String())()
	for w.pos.Compare(until) < 0 {
		more, err := w.batch()
		if err != nil {
			w.t.Fatal(err)
		}
		if len(more) > 0 {
			w.t.Fatalf("events came: %v", ids(more))
		}
	}
}

// failure takes batches until the stream ends with an error.
func (w *watched) failure() (got []seen, err error) {
	w.t.Helper()
	defer w.patience("an error")()
	for {
		more, err := w.batch()
		if errors.Is(err, io.EOF) || errors.Is(err, context.DeadlineExceeded) {
			w.t.Fatal(err)
		}
		if err != nil {
			return got, err
		}
		got = append(got, more...)
	}
}

func ids(events []seen) []string {
	all := make([]string, len(events))
	for i, e := range events {
		all[i] = e.id
	}
	return all
}

func numbers(from, to int) []string {
	var all []string
	for n := from; n <= to; n++ {
		all = append(all, fmt.Sprint(n))
	}
	return all
}
