package mongo

import (
	"context"
	"strconv"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// markID is the _id of a mark, as forze writes it.
func markID(route, id string) string {
	return strconv.Itoa(utf8.RuneCountInString(route)) + ":" + route + "|" + id
}

// mark inserts a mark unless it is there, and reports whether it was new. An insert
// that finds it there would end the transaction; an upsert finds the document and
// leaves it as it is. Of two transactions that insert it at the same time the later one
// conflicts.
func mark(ctx context.Context, marks *mongo.Collection, route, id string) (fresh bool, err error) {
	literal := func(s string) bson.D { return bson.D{{Key: "$literal", Value: s}} }
	insert := bson.D{
		{Key: "_id", Value: "$_id"},
		{Key: "inbox_route", Value: literal(route)},
		{Key: "message_id", Value: literal(id)},
		{Key: "tenant_id", Value: nil},
		{Key: "processed_at", Value: "$$NOW"}, // the server's clock; $setOnInsert has none
	}
	isNew := bson.D{{Key: "$eq", Value: bson.A{bson.D{{Key: "$type", Value: "$inbox_route"}}, "missing"}}}
	res, err := marks.UpdateOne(ctx, bson.D{{Key: "_id", Value: markID(route, id)}},
		mongo.Pipeline{{{Key: "$replaceWith", Value: bson.D{{Key: "$cond", Value: bson.A{isNew, insert, "$$ROOT"}}}}}},
		options.UpdateOne().SetUpsert(true))
	if err != nil {
		if conflict(err) {
			err = busyError{err}
		}
		return false, err
	}
	return res.UpsertedCount == 1, nil
}

// busyError is a conflict at the mark: another transaction has it.
type busyError struct{ error }

func (e busyError) Unwrap() error { return e.error }
