package main

import (
	"context"

	driver "go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/config"
	"github.com/walrelay/walrelay/mongostream"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/outbox/mongo"
)

// openMongoStore prepares the collection of a source.
func openMongoStore(c *config.Config, name string) (store, error) {
	mopt, err := c.MongoOptions(name)
	if err != nil {
		return nil, err
	}
	copt, err := c.CollectionOptions(name)
	if err != nil {
		return nil, err
	}
	copt.Client = func(ctx context.Context) (*driver.Client, error) { return mongostream.Connect(ctx, mopt) }
	copt.Classify = mongostream.Classify
	return mongoStore{mongo.New(copt)}, nil
}

// mongoStore is the store in a MongoDB database.
type mongoStore struct{ *mongo.Database }

func (s mongoStore) Tables(ctx context.Context) ([]outbox.Table, error) {
	tables, err := s.Database.Tables(ctx)
	return tablesOf(tables), err
}

func (s mongoStore) Leases() outbox.Leases { return s.Database.Leases() }

func (s mongoStore) Parking() parkingStore { return s.Database.Parking() }

func (s mongoStore) Backlog(ctx context.Context, t outbox.Table, loose []string) (backlog, error) {
	return t.(*mongo.Table).Backlog(ctx, loose) // Tables gave it
}
