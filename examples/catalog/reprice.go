package main

import (
	"context"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/stage"
	stagemongo "github.com/walrelay/walrelay/stage/mongo"
)

type catalog struct {
	db  *mongo.Database
	out *stagemongo.Outbox
}

// priceChanged is what readers get to know of a change.
type priceChanged struct {
	Product string `json:"product"`
	Price   string `json:"price"` // a decimal number as text: no reader rounds it
	Version int64  `json:"version"`
}

// reprice changes a price and writes the event that tells of it. They are in one
// transaction: neither is there without the other, whatever breaks.
func (c catalog) reprice(ctx context.Context, product, price string) (version int64, err error) {
	request, err := uuid.NewV7()
	if err != nil {
		return 0, err
	}
	// All that follows from this request, in whichever service, has the same correlation.
	ctx = stage.WithIdentity(ctx, stage.Identity{Correlation: request})
	session, err := c.db.Client().StartSession()
	if err != nil {
		return 0, err
	}
	defer session.EndSession(context.WithoutCancel(ctx))
	// Whoever else changes the same product at the same time sends us back: then the
	// function runs again, from its buffer on.
	_, err = session.WithTransaction(ctx, func(ctx context.Context) (any, error) {
		var p struct{ Version int64 }
		err := c.db.Collection("products").FindOneAndUpdate(ctx, bson.D{{Key: "_id", Value: product}},
			bson.D{{Key: "$set", Value: bson.D{{Key: "price", Value: price}}}, {Key: "$inc", Value: bson.D{{Key: "version", Value: int64(1)}}}},
			options.FindOneAndUpdate().SetUpsert(true).SetReturnDocument(options.After)).Decode(&p)
		if err != nil {
			return nil, err
		}
		version = p.Version
		b := c.out.Buffer()
		if _, err := b.Stage(ctx, stage.Event{
			Route: "products", Type: "PriceChanged", Key: product, Payload: priceChanged{product, price, version},
		}); err != nil {
			return nil, err
		}
		_, err = c.out.Flush(ctx, b)
		return nil, err
	})
	return version, err
}
