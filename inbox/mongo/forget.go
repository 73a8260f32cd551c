package mongo

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/inbox"
)

// Retention says which marks are forgotten.
type Retention = inbox.Retention

// Forget deletes old marks of the route, oldest first, in commands of bounded size, and
// returns how many. Call it now and then: a call that ended at its bound left the rest
// for the next one. The age is measured by the database's clock. Call it outside of
// transactions: a session that ctx carries takes the deletes into its own.
func (in *Inbox) Forget(ctx context.Context, r Retention) (int64, error) {
	return inbox.Forget(in.Inbox, r, func(keep time.Duration, most int) (int64, error) {
		// MongoDB deletes one or all: so the oldest are found first, and deleted by _id.
		cursor, err := in.marks.Find(ctx, oldMarks(in.Route(), keep),
			options.Find().SetProjection(bson.D{{Key: "_id", Value: 1}}).SetSort(bson.D{{Key: "processed_at", Value: 1}}).SetLimit(int64(most)))
		if err != nil {
			return 0, err
		}
		var found []bson.Raw
		if err := cursor.All(ctx, &found); err != nil || len(found) == 0 {
			return 0, err
		}
		ids := make(bson.A, len(found))
		for i, doc := range found {
			ids[i] = doc.Lookup("_id")
		}
		// A mark never gets younger, so what was old is old.
		res, err := in.marks.DeleteMany(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}}})
		if err != nil {
			return 0, err
		}
		return res.DeletedCount, nil
	})
}

// oldMarks are those of a route that are older than keep by the server's clock. A mark
// without a date has no age, and stays.
func oldMarks(route string, keep time.Duration) bson.D {
	limit := bson.D{{Key: "$subtract", Value: bson.A{"$$NOW", keep.Milliseconds()}}}
	return bson.D{
		{Key: "inbox_route", Value: route},
		{Key: "processed_at", Value: bson.D{{Key: "$type", Value: "date"}}},
		{Key: "$expr", Value: bson.D{{Key: "$lt", Value: bson.A{"$processed_at", limit}}}},
	}
}
