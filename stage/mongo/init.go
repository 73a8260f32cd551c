package mongo

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// Indexes are those that an outbox needs, as walrelay init makes them too: the first
// is the writer's, which decides what is a repetition; the others are for relays and
// other readers that claim from the collection.
func Indexes() []mongo.IndexModel {
	keys := func(names ...string) (d bson.D) {
		for _, n := range names {
			d = append(d, bson.E{Key: n, Value: 1})
		}
		return d
	}
	return []mongo.IndexModel{
		{Keys: keys("outbox_route", "event_id"), Options: options.Index().SetUnique(true)},
		{Keys: keys("outbox_route", "status", "available_at", "created_at")},
		{Keys: keys("outbox_route", "status", "processing_at")},
		{Keys: keys("claim_token"), Options: options.Index().SetSparse(true)},
		{Keys: keys("outbox_route", "status", "available_at", "hlc", "created_at", "id")},
	}
}

// Init makes the collections and indexes of an outbox where they are missing; it may
// be repeated. Collections that are there before the first transaction keep
// transactions from conflicting over their making. The last index is left out for an
// outbox without stamps.
func Init(ctx context.Context, db *mongo.Database, o Options) error {
	if err := o.Validate(); err != nil {
		return fmt.Errorf("making the outbox: %w", err)
	}
	o = o.withDefaults()
	indexes := Indexes()
	if o.OmitHLC {
		indexes = indexes[:len(indexes)-1]
	}
	// Also makes the collection.
	if _, err := db.Collection(o.Collection).Indexes().CreateMany(ctx, indexes); err != nil {
		return fmt.Errorf("making the indexes of %s.%s: %w", db.Name(), o.Collection, err)
	}
	if o.NoCheckpoint {
		return nil
	}
	if err := db.CreateCollection(ctx, o.Checkpoint.collection()); err != nil && !exists(err) {
		return fmt.Errorf("making collection %s.%s: %w", db.Name(), o.Checkpoint.collection(), err)
	}
	return nil
}

// exists: NamespaceExists.
func exists(err error) bool {
	var e mongo.ServerError
	return errors.As(err, &e) && e.HasErrorCode(48)
}
