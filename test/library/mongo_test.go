package library

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.opentelemetry.io/otel/trace"

	"github.com/walrelay/walrelay/inbox"
	inboxmongo "github.com/walrelay/walrelay/inbox/mongo"
	"github.com/walrelay/walrelay/stage"
	stagemongo "github.com/walrelay/walrelay/stage/mongo"
	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/mongoserver"
	"github.com/walrelay/walrelay/test/rig"
)

// mongoShop is an application's MongoDB database with a relay behind it.
type mongoShop struct {
	*rig.House
	k  *kafkaserver.Server
	db *mongo.Database
}

func newMongoShop(t *testing.T) *mongoShop {
	t.Helper()
	k, m := kafkaserver.Shared(t), mongoserver.Shared(t)
	h := rig.NewMongoHouse(t, m, k.Brokers(), k.Topic(t, 1, nil))
	h.Init(t)
	db := m.Client(t).Database(h.Database)
	initialize(t, db)
	return &mongoShop{h, k, db}
}

// Outbox contract, 3.1, from MongoDB: the headers of forze in their order; the payload
// with the same members and values, or the text itself; times to the millisecond.
func TestStagedDocumentsArriveWithTheHeadersOfTheContract(t *testing.T) {
	t.Parallel()
	h := newMongoShop(t)
	r := h.Start(t)
	r.WaitReady(soon)
	const (
		tenant, correlation = "0198f3a0-0000-7000-8000-00000000000a", "0198f3a0-0000-7000-8000-00000000000c"
		cause, execution    = "0198f3a0-0000-7000-8000-00000000000d", "0198f3a0-0000-7000-8000-00000000000b"
		payload             = `{ "n":9007199254740993 , "html":"<a>", "s":"\u00e9", "$oid": {"f": 19.99} }`
	)
	reaction := inbox.Identity{Execution: uuid.MustParse(execution), Correlation: uuid.MustParse(correlation), Causation: uuid.MustParse(cause)}
	ctx := stage.WithIdentity(t.Context(), stage.Identity{Tenant: uuid.MustParse(tenant)})
	ctx = stage.WithIdentity(ctx, stage.Identity(reaction))
	ctx = trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{0x0a, 15: 0x9c}, SpanID: trace.SpanID{0xb7, 7: 0x31}, TraceFlags: trace.FlagsSampled,
	}))
	var want []string
	for _, o := range []stagemongo.Options{{}, {PayloadAsText: true}, {Form: stagemongo.DocumentsDeleted}} {
		out, err := stagemongo.Open(ctx, h.db, o)
		if err != nil {
			t.Fatal(err)
		}
		full := stage.Event{
			Route: "orders", Type: "OrderPlaced", Key: "order-1", Payload: json.RawMessage(payload), OccurredAt: time.Date(2026, 6, 1, 12, 0, 0, 123_456_000, time.UTC),
		}
		staged, err := commitMongo(ctx, h.db, out, full)
		if err != nil {
			t.Fatal(err)
		}
		value := `{"n":9007199254740993,"html":"<a>","s":"é","$oid":{"f":19.99}}`
		if o.PayloadAsText {
			value = payload
		}
		want = append(want, "order-1", value, "forze_event_id="+staged[0].ID.String(), "forze_occurred_at=2026-06-01T12:00:00.123000+00:00",
			"forze_correlation_id="+correlation, "forze_causation_id="+cause, "forze_execution_id="+execution, "forze_tenant_id="+tenant,
			"forze_hlc="+staged[0].Stamp.String(), "traceparent=00-0a00000000000000000000000000009c-b700000000000031-01", "forze_type=OrderPlaced")
		// Without identity and span, two in one transaction.
		bare := stage.Event{Route: "orders", Type: "OrderPaid", Payload: struct{}{}, OccurredAt: time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)}
		if staged, err = commitMongo(t.Context(), h.db, out, bare, bare); err != nil {
			t.Fatal(err)
		}
		for _, s := range staged {
			want = append(want, s.ID.String(), "{}", "forze_event_id="+s.ID.String(), "forze_occurred_at=2026-06-01T12:00:00+00:00",
				"forze_hlc="+s.Stamp.String(), "forze_type=OrderPaid")
		}
	}
	var got []string
	for _, rec := range h.k.ConsumeN(t, 9, soon, h.Topic) {
		got = append(append(got, string(rec.Key), string(rec.Value)), headers(rec)...)
	}
	if !slices.Equal(got, want) {
		t.Errorf("records\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if n, err := h.db.Collection("outbox").CountDocuments(ctx, bson.D{}); err != nil || n != 6 {
		t.Errorf("%d documents are left, %v, want the 6 that stay", n, err)
	}
}

// Batteries A1 to A3 with all parts real: events are staged and flushed, relayed by a
// process that is killed, relayed again by another, and applied once by an inbox in MongoDB.
func TestEventsOfMongoAreAppliedOnceOverACrashOfTheRelay(t *testing.T) {
	t.Parallel()
	h := newMongoShop(t)
	h.Source = "after_publish: mark"
	out, err := stagemongo.Open(t.Context(), h.db, stagemongo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := h.Start(t)
	r.WaitReady(soon)
	var ids []string
	stageFive := func() {
		for i := range 5 {
			staged, err := commitMongo(t.Context(), h.db, out, stage.Event{Route: "orders", Type: fmt.Sprint("conformance.evt.", i), Key: fmt.Sprint("order-", i%2), Payload: struct{}{}})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, staged[0].ID.String())
		}
	}
	stageFive()
	h.k.ConsumeN(t, 5, soon, h.Topic)
	r.Kill()
	stageFive()
	r = h.Start(t)
	r.WaitReady(soon)
	core, err := inbox.New(inbox.Options{Route: "conformance_delivery", Clock: out.Clock()})
	if err != nil {
		t.Fatal(err)
	}
	in, err := inboxmongo.New(core, h.db, inboxmongo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	applied := map[string]int{}
	rig.Eventually(t, "ten events applied", soon, func() error {
		for _, rec := range h.k.Consume(t, h.Topic) {
			record := inbox.Record{Topic: rec.Topic, Partition: rec.Partition, Offset: rec.Offset, Key: rec.Key, Value: rec.Value}
			for _, hd := range rec.Headers {
				record.Headers = append(record.Headers, inbox.Header{Key: hd.Key, Value: hd.Value})
			}
			if _, err := in.Process(t.Context(), record, func(ctx context.Context, m inbox.Message) error {
				applied[m.ID]++
				return nil
			}); err != nil {
				return err
			}
		}
		if len(applied) < len(ids) {
			return fmt.Errorf("%d are", len(applied))
		}
		return nil
	})
	for _, id := range ids {
		if applied[id] != 1 {
			t.Errorf("event %s was applied %d times", id, applied[id])
		}
	}
	rig.Eventually(t, "all documents published", soon, func() error {
		n, err := h.db.Collection("outbox").CountDocuments(t.Context(), bson.D{{Key: "status", Value: "published"}})
		if err == nil && n != 10 {
			err = fmt.Errorf("%d of 10 are", n)
		}
		return err
	})
}
