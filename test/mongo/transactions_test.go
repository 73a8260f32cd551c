package mongo

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/test/mongoserver"
	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/rig"
)

func TestDocumentsDeletedByTheirOwnTransactionArriveAndThoseRolledBackDoNot(t *testing.T) {
	t.Parallel()
	s := newScene(t, mongoserver.Shared(t))
	s.Source = "after_publish: mark\nsweep_every: 1s\n"
	s.Kafka = "on_poison: park\n"
	s.Init(t)
	r := s.Start(t)
	s.streams(r)
	kept, deleted, updated, never := s.document(1), s.document(2), s.document(3), s.document(4)
	s.transact(nil, func(ctx context.Context) error {
		if _, err := s.box.InsertMany(ctx, []bson.D{kept, deleted, updated}); err != nil {
			return err
		}
		if _, err := s.box.UpdateOne(ctx, updated[:1], bson.D{{Key: "$set", Value: bson.D{{Key: "payload", Value: "changed"}}}}); err != nil {
			return err
		}
		_, err := s.box.DeleteMany(ctx, bson.D{{Key: "id", Value: bson.D{{Key: "$in", Value: bson.A{deleted[0].Value, updated[0].Value}}}}})
		return err
	})
	rollback := errors.New("rolled back")
	s.transact(rollback, func(ctx context.Context) error {
		if _, err := s.box.InsertOne(ctx, never); err != nil {
			return err
		}
		return rollback
	})
	last := s.document(5)
	s.transact(nil, func(ctx context.Context) error {
		_, err := s.box.InsertOne(ctx, last)
		return err
	})
	want := []string{id(kept), id(deleted), id(updated), id(last)}
	s.delivers(r, want...)
	var values, order []string
	for _, rec := range s.k.Consume(t, s.Topic) {
		values, order = append(values, string(rec.Value)), append(order, oracle.EventID(rec))
	}
	if !slices.Equal(order, want) {
		t.Errorf("they arrive as %v, want %v", order, want)
	}
	if expected := []string{`{"n":1}`, `{"n":2}`, `{"n":3}`, `{"n":5}`}; !slices.Equal(values, expected) {
		t.Errorf("values %v, want as inserted: %v", values, expected)
	}
	r.Eventually("no document that is not published", soon, s.pending)
}

// document is one of a key that all share.
func (s *scene) document(n int) bson.D {
	return rig.Document("orders", "one key", bson.D{{Key: "n", Value: n}})
}

func id(d bson.D) string { return d[0].Value.(string) }

// transact runs a transaction that ends with the error want.
func (s *scene) transact(want error, f func(context.Context) error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	err := s.box.Database().Client().UseSession(ctx, func(ctx context.Context) error {
		_, err := mongo.SessionFromContext(ctx).WithTransaction(ctx, func(ctx context.Context) (any, error) { return nil, f(ctx) })
		return err
	})
	if !errors.Is(err, want) {
		s.t.Fatalf("the transaction ended with %v, want %v", err, want)
	}
}
