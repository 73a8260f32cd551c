package mongo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/stage"
)

func full() stage.Event {
	return stage.Event{
		Route: "orders", Type: "OrderPlaced", Key: "order-1", Payload: json.RawMessage(`{"total": "19.99", "n": 7, "big": 1e30}`), ID: id(1),
		Identity:   stage.Identity{Tenant: id(0xa), Execution: id(0xb), Correlation: id(0xc), Causation: id(0xd)},
		OccurredAt: time.Date(2026, 6, 1, 12, 0, 0, 123_456_000, time.UTC), Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	}
}

// show is a document in canonical Extended JSON, without the ids that a flush makes.
func show(t *testing.T, doc bson.Raw) string {
	t.Helper()
	var d bson.D
	if err := bson.Unmarshal(doc, &d); err != nil {
		t.Fatal(err)
	}
	text, err := bson.MarshalExtJSON(d[2:], true, false)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Outbox contract 1.1 for MongoDB: which fields there are, in which order, of which type.
func TestDocumentHasTheFieldsOfTheContract(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	x := h.open(Options{}, func() time.Time { return time.UnixMilli(1_700_000_000_000).Add(1234567) })
	res := h.flush(x, full(), stage.Event{Route: "orders", Type: "OrderPaid", Payload: struct{}{}, ID: id(2)})
	if res.Written != 2 || len(res.Ignored) != 0 || res.Mark.String() != "001700000000001.00001" {
		t.Errorf("result %+v", res)
	}
	docs := h.docs("outbox")
	if len(docs) != 2 {
		t.Fatalf("%d documents", len(docs))
	}
	var ids []string
	for i, d := range docs {
		elements, err := d.Elements()
		if err != nil || elements[0].Key() != "_id" || elements[0].Value().Type != bson.TypeObjectID || elements[1].Key() != "id" {
			t.Fatalf("document %d begins %v", i, elements)
		}
		row, err := uuid.Parse(elements[1].Value().StringValue())
		if err != nil || row.Version() != 7 || row == id(1) || row == id(2) {
			t.Errorf("row id %s: want a UUIDv7 of its own", row)
		}
		ids = append(ids, row.String())
	}
	if ids[0] >= ids[1] {
		t.Errorf("row ids %s are not in order", ids)
	}
	date := func(ms int64) string { return fmt.Sprintf(`{"$date":{"$numberLong":"%d"}}`, ms) }
	want := []string{
		`{"outbox_route":"orders","event_id":"0198f3a0-0000-7000-8000-000000000001","event_type":"OrderPlaced",` +
			`"tenant_id":"0198f3a0-0000-7000-8000-00000000000a","execution_id":"0198f3a0-0000-7000-8000-00000000000b",` +
			`"correlation_id":"0198f3a0-0000-7000-8000-00000000000c","causation_id":"0198f3a0-0000-7000-8000-00000000000d",` +
			`"occurred_at":` + date(1780315200123) + `,"payload":{"total":"19.99","n":{"$numberInt":"7"},"big":{"$numberDouble":"1e+30"}},"status":"pending",` +
			`"created_at":` + date(1700000000001) + `,"published_at":null,"processing_at":null,"last_error":null,"attempts":{"$numberInt":"0"},"available_at":null,` +
			`"ordering_key":"order-1","hlc":{"$numberLong":"111411200000065536"},"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}`,
		`{"outbox_route":"orders","event_id":"0198f3a0-0000-7000-8000-000000000002","event_type":"OrderPaid","tenant_id":null,"execution_id":null,` +
			`"correlation_id":null,"causation_id":null,"occurred_at":` + date(1700000000001) + `,"payload":{},"status":"pending","created_at":` + date(1700000000001) +
			`,"published_at":null,"processing_at":null,"last_error":null,"attempts":{"$numberInt":"0"},"available_at":null,"ordering_key":null,"hlc":{"$numberLong":"111411200000065537"}}`,
	}
	for i, w := range want {
		if got := strings.ReplaceAll(show(t, docs[i]), "1E+30", "1e+30"); got != w {
			t.Errorf("document %d:\n%s, want\n%s", i, got, w)
		}
	}
}

func TestOptionalFieldsAreWrittenOnlyIfAskedFor(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{OmitHLC: true})
	h.flush(h.open(Options{OmitHLC: true, OmitTraceparent: true}), full())
	e := full()
	e.ID, e.AggregateVersion = id(2), 7
	none := full()
	none.ID = id(3)
	h.flush(h.open(Options{OmitHLC: true, AggregateVersion: true, PayloadAsText: true}), e, none)
	var got []string
	for _, d := range h.docs("outbox") {
		var line strings.Builder
		for _, f := range []string{"hlc", "traceparent", "aggregate_version", "payload"} {
			if v := d.Lookup(f); v.Type != 0 {
				line.WriteString(f + "=" + v.Type.String() + " ")
			}
		}
		got = append(got, line.String())
	}
	if want := "[payload=embedded document  traceparent=string aggregate_version=64-bit integer payload=string  traceparent=string payload=string ]"; fmt.Sprint(got) != want {
		t.Errorf("%s, want %s", got, want)
	}
	if text := h.docs("outbox")[1].Lookup("payload").StringValue(); text != string(full().Payload.(json.RawMessage)) {
		t.Errorf("payload %s is not the text that was staged", text)
	}
	h.wantsMarks("")
}

func TestCollectionsMayHaveAnyName(t *testing.T) {
	t.Parallel()
	o := Options{Collection: "Aus.gang ящик", Checkpoint: Checkpoint{Collection: "Uhr/1"}}
	h := newHouse(t, o)
	res := h.flush(h.open(o), full())
	if docs := h.docs("Aus.gang ящик"); len(docs) != 1 || docs[0].Lookup("hlc").Int64() != int64(res.Mark) {
		t.Errorf("%v", docs)
	}
	if docs := h.docs("Uhr/1"); len(docs) != 1 || docs[0].Lookup("hlc").Int64() != int64(res.Mark) {
		t.Errorf("%v", docs)
	}
}

// B1, B2 of the contract.
func TestRolledBackFlushLeavesNothingAndTheBufferIsEmpty(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	x := h.open(Options{})
	first := h.flush(x, some(1)...)
	b := h.stage(x.Buffer(), some(3)...)
	w := h.begin()
	if res, err := x.Flush(w.ctx, b); err != nil || res.Written != 3 {
		t.Fatalf("%+v %v", res, err)
	}
	h.count(1) // A4: nobody else sees it yet
	h.wantsMark(first.Mark)
	w.rollback()
	h.count(1)
	h.wantsMark(first.Mark)
	if b.Len() != 0 {
		t.Errorf("%d events are left in the buffer: a second attempt that stages anew would write them too", b.Len())
	}
}

func TestFlushThatFailedCanBeRepeatedInAnotherTransaction(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	x := h.open(Options{})
	ctx := context.Background()
	validate := func(v bson.D) {
		if err := h.db.RunCommand(ctx, bson.D{{Key: "collMod", Value: "outbox"}, {Key: "validator", Value: v}}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	validate(bson.D{{Key: "event_type", Value: bson.D{{Key: "$ne", Value: "OrderPlaced"}}}})
	b := h.stage(x.Buffer(), stage.Event{Route: "orders", Type: "OrderPaid", Payload: struct{}{}}, full())
	w := h.begin()
	res, err := x.Flush(w.ctx, b)
	if err == nil || !strings.Contains(err.Error(), "validation") || res.Written != 0 || b.Len() != 2 {
		t.Fatalf("%+v, %v, %d left in the buffer, want a refusal and 2", res, err, b.Len())
	}
	_ = w.s.AbortTransaction(w.ctx)
	h.count(0)
	validate(bson.D{})
	w = h.begin()
	if res, err = x.Flush(w.ctx, b); err != nil || res.Written != 2 || b.Len() != 0 {
		t.Fatalf("%+v %v", res, err)
	}
	w.commit()
	h.count(2)
	h.wantsMark(res.Mark)
}

// B4 of the contract, for routes too, and within one flush.
func TestEventThatIsThereAlreadyIsLeftAsItIsAndReported(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	x := h.open(Options{}, frozen(1_700_000_000_000))
	h.flush(x, full())
	again, elsewhere := full(), full()
	again.Payload, elsewhere.Route = json.RawMessage(`{"total": "0"}`), "payments"
	fresh := stage.Event{Route: "orders", Type: "OrderPaid", Payload: struct{}{}, ID: id(2)}
	twice := fresh
	twice.Type = "Twice"
	res := h.flush(x, again, fresh, twice, elsewhere, full())
	var ignored []string
	for _, s := range res.Ignored {
		ignored = append(ignored, fmt.Sprintf("%s %s %s", s.ID, s.Type, s.Stamp))
	}
	want := []string{
		id(1).String() + " OrderPlaced 001700000000000.00001", id(2).String() + " Twice 001700000000000.00003", id(1).String() + " OrderPlaced 001700000000000.00005",
	}
	if res.Written != 2 || fmt.Sprint(ignored) != fmt.Sprint(want) {
		t.Errorf("written %d, ignored %q, want 2 and %q", res.Written, ignored, want)
	}
	h.count(3)
	if total := h.docs("outbox")[0].Lookup("payload", "total").StringValue(); total != "19.99" {
		t.Errorf("total %s", total)
	}
	// The mark covers what was ignored: its stamp was issued.
	h.wantsMark(res.Mark)
	if res.Mark.String() != "001700000000000.00005" {
		t.Errorf("mark %s", res.Mark)
	}
	// Nothing but repetitions is no error either.
	if res := h.flush(x, full()); res.Written != 0 || len(res.Ignored) != 1 {
		t.Errorf("%+v", res)
	}
}

// commands collects what a client asks.
type commands struct {
	mu  sync.Mutex
	all []string
}

func (c *commands) monitor() *options.ClientOptions {
	return options.Client().SetMonitor(&event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.all = append(c.all, e.CommandName)
	}})
}

func (c *commands) take() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := strings.Join(c.all, " ")
	c.all = nil
	return all
}

// B3, and the cap of 500.
func TestFlushIsThreeCommandsInTheOrderOfStampsAndCapped(t *testing.T) {
	t.Parallel()
	var asked commands
	h := newHouse(t, Options{}, asked.monitor())
	x := h.open(Options{}, frozen(1_700_000_000_000))
	b := h.stage(x.Buffer(), some(501)...)
	w := h.begin()
	asked.take()
	if _, err := x.Flush(w.ctx, b); !errors.Is(err, stage.ErrTooMany) || asked.take() != "" || b.Len() != 501 {
		t.Fatalf("501 events: %v, %d left", err, b.Len())
	}
	res, err := x.Flush(w.ctx, h.stage(x.Buffer(), some(500)...))
	if got := asked.take(); err != nil || res.Written != 500 || got != "find insert findAndModify" {
		t.Fatalf("500 events: %+v %v, in the commands %s", res, err, got)
	}
	w.commit()
	docs := h.docs("outbox")
	if len(docs) != 500 {
		t.Fatalf("%d documents", len(docs))
	}
	for i, d := range docs {
		if d.Lookup("payload", "n").Int32() != int32(i) {
			t.Fatalf("document %d is event %s", i, d.Lookup("payload", "n"))
		}
		if i > 0 && (d.Lookup("hlc").Int64() <= docs[i-1].Lookup("hlc").Int64() || d.Lookup("id").StringValue() <= docs[i-1].Lookup("id").StringValue()) {
			t.Fatalf("document %d is not above the one before it", i)
		}
		if d.Lookup("created_at").DateTime() != docs[0].Lookup("created_at").DateTime() {
			t.Fatal("created_at differs within one flush")
		}
	}
}

func TestNothingStagedWritesNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	x := h.open(Options{})
	if res, err := x.Flush(context.Background(), x.Buffer()); err != nil || res.Written != 0 || res.Mark != 0 {
		t.Errorf("%+v %v", res, err)
	}
	h.wantsMark(0)
}

// Any text comes out as it went in, in a query too.
func TestTextsArriveAsTheyAre(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	x := h.open(Options{})
	texts := []string{"NULL", `"`, `\`, "$set", "$where", "a.b", "a.$b.c", " ", "  x ", "a\nb\tc", "ключ", "🜁", `\x00`, "'", "{}", "_id", "", strings.Repeat("x", 900)}
	var events []stage.Event
	for i, text := range texts {
		events = append(events, stage.Event{Route: "r" + text, Type: "t" + text, Key: text, Payload: map[string]string{text: text}, ID: id(i), Traceparent: text})
	}
	h.flush(x, events...)
	if res := h.flush(x, events...); res.Written != 0 || len(res.Ignored) != len(texts) {
		t.Errorf("the second time %d were written", res.Written)
	}
	for i, d := range h.docs("outbox") {
		text := texts[i]
		payload := d.Lookup("payload").Document()
		key, _ := d.Lookup("ordering_key").StringValueOK()
		if d.Lookup("outbox_route").StringValue() != "r"+text || d.Lookup("event_type").StringValue() != "t"+text || key != text || payload.Lookup(text).StringValue() != text {
			t.Errorf("text %q arrived as %s", text, d)
		}
	}
}
