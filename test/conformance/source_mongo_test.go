package conformance

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/mongostream"
	"github.com/walrelay/walrelay/relay"
	"github.com/walrelay/walrelay/test/mongoserver"
)

// streamLedger is a MongoDB database whose log is read through a change stream.
type streamLedger struct {
	opt    mongostream.Options
	client *driver.Client
	outbox *driver.Collection
}

func newStreamLedger(t *testing.T) *streamLedger {
	t.Helper()
	srv := mongoserver.Shared(t)
	l := &streamLedger{client: srv.Client(t)}
	l.opt = mongostream.Options{
		Source: "orders", URL: srv.URL(), Database: srv.NewDatabase(t), Collection: "outbox", Schema: forze(t), Holder: "conformance",
	}.WithDefaults()
	if _, err := mongostream.Apply(t.Context(), l.client, l.opt); err != nil {
		t.Fatal(err)
	}
	l.outbox = l.client.Database(l.opt.Database).Collection(l.opt.Collection)
	return l
}

func (l *streamLedger) open(t *testing.T) relay.Source {
	t.Helper()
	s, err := mongostream.Open(l.opt, mongostream.Observer{Reconnect: func(err error) { t.Logf("reconnect: %v", err) }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var errRollBack = errors.New("it is taken back")

// transaction writes events in one transaction, and then something more.
func (l *streamLedger) transaction(t *testing.T, events []int, more func(ctx context.Context) error) {
	t.Helper()
	docs := make([]any, len(events))
	for i, n := range events {
		docs[i] = bson.D{
			{Key: "event_id", Value: eventID(n)},
			{Key: "outbox_route", Value: "orders"},
			{Key: "event_type", Value: "made"},
			{Key: "occurred_at", Value: made(n)},
			{Key: "created_at", Value: made(n)},
			{Key: "payload", Value: bson.D{{Key: "n", Value: n}}},
			{Key: "status", Value: "pending"},
			{Key: "attempts", Value: 0},
			{Key: "ordering_key", Value: fmt.Sprint("k", n)},
			{Key: "hlc", Value: int64(n)},
		}
	}
	session, err := l.client.StartSession()
	if err != nil {
		t.Fatal(err)
	}
	defer session.EndSession(context.Background())
	_, err = session.WithTransaction(t.Context(), func(ctx context.Context) (any, error) {
		if _, err := l.outbox.InsertMany(ctx, docs); err != nil || more == nil {
			return nil, err
		}
		return nil, more(ctx)
	})
	if err != nil && !errors.Is(err, errRollBack) {
		t.Fatal(err)
	}
}

func (l *streamLedger) commit(t *testing.T, events ...int) {
	t.Helper()
	l.transaction(t, events, nil)
}

func (l *streamLedger) rollBack(t *testing.T, events ...int) {
	t.Helper()
	l.transaction(t, events, func(context.Context) error { return errRollBack })
}

func (l *streamLedger) vanish(t *testing.T, events ...int) {
	t.Helper()
	names := make([]string, len(events))
	for i, n := range events {
		names[i] = eventID(n)
	}
	l.transaction(t, events, func(ctx context.Context) error {
		_, err := l.outbox.DeleteMany(ctx, bson.M{"event_id": bson.M{"$in": names}})
		return err
	})
}

func (l *streamLedger) elsewhere(t *testing.T) {
	t.Helper()
	if _, err := l.outbox.Database().Collection("elsewhere").InsertOne(t.Context(), bson.M{"n": 1}); err != nil {
		t.Fatal(err)
	}
}

// cut kills the cursors of the collection's change streams.
func (l *streamLedger) cut(t *testing.T) {
	t.Helper()
	var found []struct {
		Cursor struct {
			ID int64 `bson:"cursorId"`
		} `bson:"cursor"`
	}
	cursor, err := l.client.Database("admin").Aggregate(t.Context(), driver.Pipeline{
		{{Key: "$currentOp", Value: bson.M{"allUsers": true, "idleCursors": true}}},
		{{Key: "$match", Value: bson.M{"ns": l.opt.Database + "." + l.opt.Collection, "cursor.cursorId": bson.M{"$exists": true}}}},
	})
	if err == nil {
		err = cursor.All(t.Context(), &found)
	}
	if err != nil {
		t.Fatal(err)
	}
	var ids []int64
	for _, op := range found {
		ids = append(ids, op.Cursor.ID)
	}
	if len(ids) == 0 {
		return // between two of them
	}
	if err := l.outbox.Database().RunCommand(t.Context(), bson.D{{Key: "killCursors", Value: l.opt.Collection}, {Key: "cursors", Value: ids}}).Err(); err != nil {
		t.Fatal(err)
	}
}
