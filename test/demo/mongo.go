package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/test/mongoserver"
)

// mongo is a MongoDB 6.0 replica set of one member.
type mongo struct {
	server *mongoserver.Server
}

func (*mongo) title() string   { return "MongoDB 6.0" }
func (*mongo) fetches() string { return "MongoDB (42 MB, by pip)" }
func (*mongo) undoes() bool    { return false } // MongoDB has no savepoints
func (db *mongo) env() string  { return "MONGO_URL=" + db.server.URL() }

func (db *mongo) start() (string, error) {
	m, err := mongoserver.Open(mongoserver.Options{})
	if err != nil {
		return "", fmt.Errorf("starting MongoDB: %w", err)
	}
	db.server = m
	return fmt.Sprintf("a replica set of one member on 127.0.0.1:%d", m.Port(0)), nil
}

func (db *mongo) close() {
	if db.server != nil {
		db.server.Close()
	}
}

func (*mongo) config() string {
	return `    mongo:
      url: ${MONGO_URL}
      database: shop
      collection: outbox
`
}

func (db *mongo) connect(context.Context) (session, error) {
	client, err := driver.Connect(options.Client().ApplyURI(db.server.URL()))
	return mongoSession{client}, err
}

type mongoSession struct{ client *driver.Client }

func (s mongoSession) close(ctx context.Context) { _ = s.client.Disconnect(ctx) }

func (s mongoSession) begin(context.Context) (transaction, error) {
	session, err := s.client.StartSession()
	if err == nil {
		err = session.StartTransaction()
	}
	return mongoTransaction{session, s.client.Database("shop").Collection("outbox")}, err
}

type mongoTransaction struct {
	session *driver.Session
	outbox  *driver.Collection
}

func (t mongoTransaction) part(context.Context) (transaction, error) {
	return nil, errors.New("a part of a transaction cannot be taken back")
}

func (t mongoTransaction) commit(ctx context.Context) error {
	defer t.session.EndSession(ctx)
	return t.session.CommitTransaction(ctx)
}

func (t mongoTransaction) rollBack(ctx context.Context) error {
	defer t.session.EndSession(ctx)
	return t.session.AbortTransaction(ctx)
}

// emit writes one event; now and then the transaction deletes its document again: the
// collection stays small, and the event is in the oplog all the same.
func (t mongoTransaction) emit(ctx context.Context, e written, kind, note string) error {
	if e.aside {
		note += ", and deleted in the same transaction"
	}
	ctx = driver.NewSessionContext(ctx, t.session)
	now := time.Now()
	made, err := t.outbox.InsertOne(ctx, bson.D{
		{Key: "id", Value: e.id},
		{Key: "event_id", Value: e.id},
		{Key: "outbox_route", Value: "orders"},
		{Key: "event_type", Value: kind},
		{Key: "ordering_key", Value: e.key},
		{Key: "status", Value: "pending"},
		{Key: "attempts", Value: int32(0)},
		{Key: "occurred_at", Value: now},
		{Key: "created_at", Value: now},
		{Key: "payload", Value: bson.D{{Key: "n", Value: e.n}, {Key: "written", Value: note}}},
	})
	if err != nil || !e.aside {
		return err
	}
	_, err = t.outbox.DeleteOne(ctx, bson.D{{Key: "_id", Value: made.InsertedID}})
	return err
}
