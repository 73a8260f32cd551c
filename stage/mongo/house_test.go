package mongo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"github.com/walrelay/walrelay/hlc"
	"github.com/walrelay/walrelay/stage"
	"github.com/walrelay/walrelay/test/mongoserver"
)

func TestMain(m *testing.M) { mongoserver.Main(m) }

// house is an application's database.
type house struct {
	t  testing.TB
	db *mongo.Database
}

func newHouse(t testing.TB, o Options, more ...*options.ClientOptions) *house {
	t.Helper()
	s := mongoserver.Shared(t)
	h := &house{t, s.Client(t, more...).Database(s.NewDatabase(t))}
	if err := Init(context.Background(), h.db, o); err != nil {
		t.Fatal(err)
	}
	return h
}

// work is a transaction of the application.
type work struct {
	t   testing.TB
	ctx context.Context
	s   *mongo.Session
}

func (h *house) begin() *work {
	h.t.Helper()
	s, err := h.db.Client().StartSession()
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { s.EndSession(context.Background()) })
	if err := s.StartTransaction(); err != nil {
		h.t.Fatal(err)
	}
	return &work{h.t, mongo.NewSessionContext(context.Background(), s), s}
}

func (w *work) commit() {
	w.t.Helper()
	if err := w.s.CommitTransaction(w.ctx); err != nil {
		w.t.Fatalf("commit: %v", err)
	}
}

func (w *work) rollback() {
	w.t.Helper()
	if err := w.s.AbortTransaction(w.ctx); err != nil {
		w.t.Fatalf("abort: %v", err)
	}
}

// transact runs f as applications do: again and again, until it does not conflict.
func (h *house) transact(f func(ctx context.Context) error) error {
	return h.db.Client().UseSession(context.Background(), func(ctx context.Context) error {
		_, err := mongo.SessionFromContext(ctx).WithTransaction(ctx, func(ctx context.Context) (any, error) { return nil, f(ctx) })
		return err
	})
}

// transactPrimary is transact for a client that reads elsewhere.
func (h *house) transactPrimary(f func(ctx context.Context) error) error {
	return h.db.Client().UseSession(context.Background(), func(ctx context.Context) error {
		_, err := mongo.SessionFromContext(ctx).WithTransaction(ctx, func(ctx context.Context) (any, error) { return nil, f(ctx) },
			options.Transaction().SetReadPreference(readpref.Primary()))
		return err
	})
}

// open opens the outbox as a new process would; its wall clock is at.
func (h *house) open(o Options, at ...func() time.Time) *Outbox {
	h.t.Helper()
	if len(at) > 0 {
		o.Now = at[0]
	}
	x, err := Open(context.Background(), h.db, o)
	if err != nil {
		h.t.Fatal(err)
	}
	return x
}

// flush is one unit of work that commits.
func (h *house) flush(x *Outbox, events ...stage.Event) Result {
	h.t.Helper()
	b := h.stage(x.Buffer(), events...)
	w := h.begin()
	res, err := x.Flush(w.ctx, b)
	if err != nil {
		h.t.Fatal(err)
	}
	w.commit()
	return res
}

func (h *house) stage(b *stage.Buffer, events ...stage.Event) *stage.Buffer {
	h.t.Helper()
	for _, e := range events {
		if _, err := b.Stage(context.Background(), e); err != nil {
			h.t.Fatal(err)
		}
	}
	return b
}

// some are n events.
func some(n int) (all []stage.Event) {
	for i := range n {
		all = append(all, stage.Event{Route: "orders", Type: "OrderPlaced", Key: fmt.Sprint("order-", i%3), Payload: map[string]int{"n": i}})
	}
	return all
}

// docs are a collection's documents in the order of insertion, as seen by nobody's session.
func (h *house) docs(collection string) (all []bson.Raw) {
	h.t.Helper()
	cursor, err := h.db.Collection(collection).Find(context.Background(), bson.D{}, options.Find().SetSort(bson.D{{Key: "$natural", Value: 1}}))
	if err == nil {
		err = cursor.All(context.Background(), &all)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return all
}

func (h *house) count(want int) {
	h.t.Helper()
	if got := len(h.docs("outbox")); got != want {
		h.t.Errorf("%d documents in the outbox, want %d", got, want)
	}
}

// put inserts documents as somebody else would.
func (h *house) put(collection string, docs ...any) {
	h.t.Helper()
	if _, err := h.db.Collection(collection).InsertMany(context.Background(), docs); err != nil {
		h.t.Fatal(err)
	}
}

// wantsMarks holds the checkpoint against what it ought to be, node and mark in turn.
func (h *house) wantsMarks(want string) {
	h.t.Helper()
	var all []string
	cursor, err := h.db.Collection("hlc_checkpoint").Find(context.Background(), bson.D{}, options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}))
	if err != nil {
		h.t.Fatal(err)
	}
	for cursor.Next(context.Background()) {
		d := cursor.Current
		all = append(all, fmt.Sprintf("%s=%d", d.Lookup("_id").StringValue(), d.Lookup("hlc").Int64()))
	}
	if got := strings.Join(all, " "); got != want || cursor.Err() != nil {
		h.t.Errorf("marks %q, %v, want %q", got, cursor.Err(), want)
	}
}

// one keeps the mark in one document, which all transactions meet at.
var one = Checkpoint{Stripes: 1}

// wantsMark holds the greatest of the node's marks against what it ought to be; 0 is none.
func (h *house) wantsMark(want hlc.Stamp) {
	h.t.Helper()
	top := int64(0)
	for _, d := range h.docs("hlc_checkpoint") {
		if node, _, _ := strings.Cut(d.Lookup("_id").StringValue(), "/"); node != DefaultNodeKey {
			h.t.Errorf("mark %s", d)
		}
		top = max(top, d.Lookup("hlc").Int64())
	}
	if hlc.Stamp(top) != want {
		h.t.Errorf("mark %s, want %s", hlc.Stamp(top), want)
	}
}

func id(n int) uuid.UUID { return uuid.MustParse(fmt.Sprintf("0198f3a0-0000-7000-8000-%012x", n)) }

func frozen(ms int64) func() time.Time { return func() time.Time { return time.UnixMilli(ms) } }

// sentBack reports whether the driver would run the transaction again.
func sentBack(err error) bool {
	e, ok := errors.AsType[mongo.LabeledError](err)
	return ok && e.HasErrorLabel("TransientTransactionError")
}
