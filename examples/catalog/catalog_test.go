package main

import (
	"context"
	"errors"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/test/mongoserver"
)

func TestMain(m *testing.M) { mongoserver.Main(m) }

func database(t *testing.T) *mongo.Database {
	t.Helper()
	s := mongoserver.Shared(t)
	return s.Client(t).Database(s.NewDatabase(t))
}

// Two processes change the same three products. What they say of a product is each
// version once, and the last one's price is that of the product.
func TestEachChangeIsToldOnce(t *testing.T) {
	t.Parallel()
	db := database(t)
	var processes sync.WaitGroup
	for _, node := range []string{"catalog-1", "catalog-2"} {
		processes.Go(func() {
			if err := run(t.Context(), db, node, 30, 3, 0); err != nil {
				t.Error(err)
			}
		})
	}
	processes.Wait()
	cursor, err := db.Collection("outbox").Find(t.Context(), bson.D{}, options.Find().SetSort(bson.D{{Key: "payload.version", Value: 1}}))
	if err != nil {
		t.Fatal(err)
	}
	type told struct {
		Key     string       `bson:"ordering_key"`
		Payload priceChanged `bson:"payload"`
	}
	var events []told
	if err := cursor.All(t.Context(), &events); err != nil {
		t.Fatal(err)
	}
	versions := map[string]int64{}
	prices := map[string]string{}
	for _, e := range events {
		versions[e.Key]++
		prices[e.Key] = e.Payload.Price
		if e.Payload.Version != versions[e.Key] || e.Payload.Product != e.Key {
			t.Errorf("event %d of %s tells of version %d of %s", versions[e.Key], e.Key, e.Payload.Version, e.Payload.Product)
		}
	}
	if len(events) != 60 {
		t.Errorf("%d events, want 60", len(events))
	}
	for product, n := range versions {
		var p struct {
			Price   string
			Version int64
		}
		if err := db.Collection("products").FindOne(t.Context(), bson.D{{Key: "_id", Value: product}}).Decode(&p); err != nil || p.Version != n || p.Price != prices[product] {
			t.Errorf("%s has version %d and costs %s, %v; told were %d and %s", product, p.Version, p.Price, err, n, prices[product])
		}
	}
}

func TestEndOfTheProcessIsNoError(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, database(t), "catalog-1", 3, 3, 0); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
