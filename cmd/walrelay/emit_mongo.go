package main

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/config"
	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/mongostream"
)

// emitDocument writes the test event as an application on MongoDB would.
func (a *app) emitDocument(ctx context.Context, c *config.Config, name string, e emission) error {
	if e.message {
		return usageError("source %s is a replica set: MongoDB has no logical messages", name)
	}
	opt, err := c.MongoOptions(name)
	if err != nil {
		return err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	doc, err := testDocument(&opt.Schema, id, e)
	if err != nil {
		return err
	}
	return withMongo(ctx, opt, 30*time.Second, func(ctx context.Context, client *mongo.Client) error {
		if _, err := client.Database(opt.Database).Collection(opt.Collection).InsertOne(ctx, doc); err != nil {
			return mongostream.Classify(err, "writing the test event")
		}
		_, err := fmt.Fprintf(a.out, "event %s written to collection %s\n", id, opt.Namespace())
		return err
	})
}

// testDocument is the test event in the schema's fields.
func testDocument(schema *event.Schema, id uuid.UUID, e emission) (bson.D, error) {
	var payload any
	if err := bson.UnmarshalExtJSON([]byte(`{"v":`+e.payload+`}`), false, &payload); err != nil {
		return nil, usageError("emit: the payload cannot be a BSON value: %v", err)
	}
	col := schema.Columns
	doc := bson.D{}
	set := func(f event.Field, v any) {
		if col[f] == "" || col[f] == "_id" {
			return
		}
		for _, have := range doc {
			if have.Key == col[f] {
				return
			}
		}
		doc = append(doc, bson.E{Key: col[f], Value: v})
	}
	now := time.Now().UTC()
	set(event.RowID, id.String())
	set(event.EventID, id.String())
	set(event.Route, e.route)
	set(event.Type, e.typ)
	set(event.Payload, payload.(bson.D)[0].Value)
	set(event.OccurredAt, now)
	switch {
	case e.key != "":
		set(event.Key, e.key)
	case schema.Required[event.Key]:
		set(event.Key, id.String())
	}
	if schema.Preset == event.Forze {
		set(event.Status, "pending")
		doc = append(doc, bson.E{Key: "attempts", Value: int32(0)}, bson.E{Key: "created_at", Value: now})
	}
	return doc, nil
}
