package mongo

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// Init makes the collection, "inbox" when empty, with the index that Forget reads; it
// may be repeated. A collection that others made works without the index, and takes
// longer to forget. One that is there before the first record keeps transactions from
// conflicting over its making.
func Init(ctx context.Context, db *mongo.Database, collection string) error {
	c := marks(db, collection)
	_, err := c.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.D{{Key: "inbox_route", Value: 1}, {Key: "processed_at", Value: 1}}})
	if err != nil {
		return fmt.Errorf("making the index of %s.%s: %w", db.Name(), c.Name(), err)
	}
	return nil
}
