package mongo_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/hlc"
	"github.com/walrelay/walrelay/inbox"
	"github.com/walrelay/walrelay/inbox/mongo"
	"github.com/walrelay/walrelay/stage"
	stagemongo "github.com/walrelay/walrelay/stage/mongo"
)

// The two halves of the library together: what a handler stages names the event as
// its cause, goes on with its trace, sorts after it, and shares the fate of the mark.
func TestReactionCarriesOnFromItsCauseAndSharesTheFateOfTheMark(t *testing.T) {
	t.Parallel()
	const (
		correlation = "0198f3a0-0000-7000-8000-00000000aaaa"
		tenant      = "0198f3a0-0000-7000-8000-00000000bbbb"
		trace       = "0af7651916cd43dd8448eb211c80319c"
	)
	h := newHouse(t)
	if err := stagemongo.Init(t.Context(), h.db, stagemongo.Options{}); err != nil {
		t.Fatal(err)
	}
	out, err := stagemongo.Open(t.Context(), h.db, stagemongo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// The other service's clock is 3 s ahead, within the allowed drift.
	cause, err := hlc.Pack(time.Now().Add(3*time.Second).UnixMilli(), 5)
	if err != nil {
		t.Fatal(err)
	}
	record := published(1, 1, "forze_hlc", cause.String(), "forze_correlation_id", correlation, "forze_tenant_id", tenant,
		"traceparent", "00-"+trace+"-b7ad6b7169203331-01")
	in := h.inbox(inbox.Options{Clock: out.Clock(), TenantFromHeaders: true}, mongo.Options{})
	fail := true
	react := func(ctx context.Context, m inbox.Message) error {
		b := out.Buffer()
		if _, err := b.Stage(stage.WithIdentity(ctx, stage.Identity(m.Identity)), stage.Event{Route: "payments", Type: "OrderPaid", Key: string(m.Key), Payload: map[string]int{"n": 1}}); err != nil {
			return err
		}
		if _, err := out.Flush(ctx, b); err != nil {
			return err
		}
		if fail {
			return errNoMoney
		}
		return nil
	}
	if _, err := in.Process(t.Context(), record, react); !errors.Is(err, errNoMoney) {
		t.Error(err)
	}
	if n := h.count("outbox", bson.D{}) + h.count("inbox", bson.D{}) + h.count("hlc_checkpoint", bson.D{}); n != 0 {
		t.Errorf("%d documents are left of what was rolled back", n)
	}
	fail = false
	for i, want := range []inbox.Outcome{inbox.Handled, inbox.Duplicate} {
		got, err := in.Process(t.Context(), record, react)
		is(t, []string{"first", "second"}[i], want, got, err)
	}
	if n := h.count("outbox", bson.D{}); n != 1 {
		t.Errorf("%d reactions to one event", n)
	}
	var d bson.Raw
	if err := h.db.Collection("outbox").FindOne(t.Context(), bson.D{}).Decode(&d); err != nil {
		t.Fatal(err)
	}
	text := func(field string) string { s, _ := d.Lookup(field).StringValueOK(); return s }
	if text("correlation_id") != correlation || text("tenant_id") != tenant || text("causation_id") != eventID(1) || len(text("execution_id")) != 36 ||
		!strings.HasPrefix(text("traceparent"), "00-"+trace+"-") || d.Lookup("hlc").Int64() <= int64(cause) {
		t.Errorf("reaction %s", d)
	}
}
