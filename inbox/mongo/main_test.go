package mongo_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/inbox"
	"github.com/walrelay/walrelay/inbox/mongo"
	"github.com/walrelay/walrelay/test/mongoserver"
)

func TestMain(m *testing.M) { mongoserver.Main(m) }

// house is a database with an inbox and collections that handlers write to.
type house struct {
	t  *testing.T
	db *driver.Database
}

func newHouse(t *testing.T, more ...*options.ClientOptions) *house {
	t.Helper()
	s := mongoserver.Shared(t)
	return furnish(t, s.Client(t, more...).Database(s.NewDatabase(t)))
}

func furnish(t *testing.T, db *driver.Database) *house {
	t.Helper()
	h := &house{t, db}
	if err := mongo.Init(t.Context(), db, ""); err != nil {
		t.Fatal(err)
	}
	if err := db.CreateCollection(t.Context(), "payments"); err != nil {
		t.Fatal(err)
	}
	for id := 1; id <= 2; id++ {
		if _, err := db.Collection("accounts").InsertOne(t.Context(), bson.D{{Key: "_id", Value: id}, {Key: "money", Value: 0}}); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// pay is what a handler does.
func (h *house) pay(ctx context.Context, m inbox.Message) error {
	_, err := h.db.Collection("payments").InsertOne(ctx, bson.D{{Key: "id", Value: m.ID}, {Key: "execution", Value: m.Identity.Execution.String()}})
	return err
}

// earn adds to an account, in the transaction of ctx or by itself.
func (h *house) earn(ctx context.Context, account, money int) error {
	_, err := h.db.Collection("accounts").UpdateByID(ctx, account, bson.D{{Key: "$inc", Value: bson.D{{Key: "money", Value: money}}}})
	return err
}

func (h *house) account(id int) int {
	h.t.Helper()
	var a struct{ Money int }
	if err := h.db.Collection("accounts").FindOne(context.Background(), bson.D{{Key: "_id", Value: id}}).Decode(&a); err != nil {
		h.t.Fatal(err)
	}
	return a.Money
}

func (h *house) count(collection string, filter bson.D) int {
	h.t.Helper()
	n, err := h.db.Collection(collection).CountDocuments(context.Background(), filter)
	if err != nil {
		h.t.Fatal(err)
	}
	return int(n)
}

// holds fails unless so many payments and marks are committed.
func (h *house) holds(payments, marks int) {
	h.t.Helper()
	if p, m := h.count("payments", bson.D{}), h.count("inbox", bson.D{}); p != payments || m != marks {
		h.t.Errorf("%d payments and %d marks, want %d and %d", p, m, payments, marks)
	}
}

func (h *house) inbox(core inbox.Options, opts mongo.Options) *mongo.Inbox {
	h.t.Helper()
	if core.Route == "" {
		core.Route = "payments"
	}
	c, err := inbox.New(core)
	if err != nil {
		h.t.Fatal(err)
	}
	in, err := mongo.New(c, h.db, opts)
	if err != nil {
		h.t.Fatal(err)
	}
	return in
}

// begin opens a transaction as an application does.
func (h *house) begin() (context.Context, *driver.Session) {
	h.t.Helper()
	s, err := h.db.Client().StartSession()
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { s.EndSession(context.Background()) })
	if err := s.StartTransaction(); err != nil {
		h.t.Fatal(err)
	}
	return driver.NewSessionContext(context.Background(), s), s
}

// is fails unless a record had that outcome without an error.
func is(t *testing.T, what string, want, got inbox.Outcome, err error) {
	t.Helper()
	if got != want || err != nil {
		t.Errorf("%s: %s, %v, want %s", what, got, err, want)
	}
}

func eventID(n int) string { return fmt.Sprintf("0198f3a0-0000-7000-8000-%012d", n) }

// published is a record as the relay publishes it and franz-go hands it out;
// further headers alternate name and value.
func published(n int, offset int64, headers ...string) inbox.Record {
	r := &kgo.Record{Topic: "orders", Partition: 1, Offset: offset, Key: []byte("order-1"), Value: []byte(`{"n": 1}`)}
	headers = append([]string{"forze_event_id", eventID(n), "forze_type", "OrderPlaced"}, headers...)
	for i := 0; i < len(headers); i += 2 {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: headers[i], Value: []byte(headers[i+1])})
	}
	return fromKafka(r)
}

func fromKafka(r *kgo.Record) inbox.Record {
	out := inbox.Record{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, inbox.Header{Key: h.Key, Value: h.Value})
	}
	return out
}
