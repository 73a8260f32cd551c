package main

import (
	"context"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/walrelay/walrelay/test/mongoserver"
	"github.com/walrelay/walrelay/test/rig"
)

// mongoBatch is the most events or documents of one answer, for the driver alone
// and for walrelay.
const mongoBatch = 1000

// collection is an outbox collection that several drains or polls read.
type collection struct {
	house  *rig.House
	client *mongo.Client
	rows   int
	began  bson.Timestamp // no event of the backlog is older
	record bson.Raw       // where walrelay stood before it; nil without
}

// mongoServer starts a replica set of one node with an oplog of so many MiB, which must
// hold a backlog that is drained from it.
func (s *site) mongoServer(t *crew, oplogMB int) *mongoserver.Server {
	return mongoserver.Start(t, mongoserver.Options{OplogMB: oplogMB, CacheMB: 1024})
}

// writeDocuments makes a house whose outbox holds so many pending documents of
// about 600 bytes, written after walrelay's position was made.
func (s *site) writeDocuments(t *crew, m *mongoserver.Server, rows int, source, stream string) *collection {
	h := rig.NewMongoHouse(t, m, s.kafka.Brokers(), "unused")
	h.Source, h.Stream = source, stream
	h.Init(t)
	c := &collection{house: h, client: m.Client(t), rows: rows}
	c.record = c.readRecord(t)
	c.load(t)
	return c
}

// load writes the documents.
func (c *collection) load(t *crew) {
	c.began = c.now(t)
	began := time.Now()
	// Nobody waits for the disk here: the drains begin long after.
	outbox := c.database().Collection("outbox", options.Collection().SetWriteConcern(writeconcern.W1()))
	for from := 1; from <= c.rows; from += mongoBatch {
		var documents []bson.D
		for i := from; i < from+mongoBatch && i <= c.rows; i++ {
			documents = append(documents, document(i))
		}
		if _, err := outbox.InsertMany(context.Background(), documents); err != nil {
			t.Fatalf("writing the backlog: %v", err)
		}
	}
	t.Logf("mongo: %d documents written in %.1f s", c.rows, time.Since(began).Seconds())
}

func (c *collection) database() *mongo.Database { return c.client.Database(c.house.Database) }

// document is the i-th event, much as the rows for Postgres are.
func document(i int) bson.D {
	now := time.Now().UTC()
	digest := func(n int) string { return fmt.Sprintf("%032x", uint64(n)*0x9E3779B97F4A7C15) }
	id := fmt.Sprintf("01890a5d-ac96-774b-bcce-%012x", i)
	payload := bson.D{
		{Key: "order", Value: digest(i)},
		{Key: "customer", Value: bson.D{{Key: "id", Value: int32(i * 7919 % 1000003)}, {Key: "name", Value: fmt.Sprint("Customer ", i%20000)}}},
		{Key: "lines", Value: bson.A{
			bson.D{{Key: "sku", Value: digest(i + 1)[20:]}, {Key: "quantity", Value: int32(i%7 + 1)}, {Key: "price", Value: float64(i%9973) / 100}},
			bson.D{{Key: "sku", Value: digest(i + 2)[20:]}, {Key: "quantity", Value: int32(1)}, {Key: "price", Value: 19.90}},
		}},
		{Key: "total", Value: float64(i%99991) / 100},
		{Key: "currency", Value: "EUR"},
		{Key: "paid", Value: true},
	}
	return bson.D{
		{Key: "id", Value: id},
		{Key: "event_id", Value: id},
		{Key: "outbox_route", Value: "orders"},
		{Key: "event_type", Value: "OrderPlaced"},
		{Key: "status", Value: "pending"},
		{Key: "attempts", Value: int32(0)},
		{Key: "occurred_at", Value: now},
		{Key: "created_at", Value: now},
		{Key: "available_at", Value: nil},
		{Key: "ordering_key", Value: fmt.Sprint("customer-", i%20000)},
		{Key: "hlc", Value: int64(i) << 16},
		{Key: "payload", Value: payload},
	}
}

// now is the server's present moment: the time of its last write, and a tick.
func (c *collection) now(t *crew) bson.Timestamp {
	var said struct {
		OperationTime bson.Timestamp `bson:"operationTime"`
	}
	if err := c.client.Database("admin").RunCommand(context.Background(), bson.D{{Key: "ping", Value: 1}}).Decode(&said); err != nil {
		t.Fatalf("asking for the operation time: %v", err)
	}
	return bson.Timestamp{T: said.OperationTime.T, I: said.OperationTime.I + 1}
}

const records = "walrelay_sources"

// readRecord is walrelay's position, nil without one.
func (c *collection) readRecord(t *crew) bson.Raw {
	record, err := c.database().Collection(records).FindOne(context.Background(), bson.D{}).Raw()
	if err != nil && err != mongo.ErrNoDocuments {
		t.Fatalf("reading the position: %v", err)
	}
	return record
}

// rewind puts walrelay's position back before the backlog.
func (c *collection) rewind(t *crew) {
	if c.record == nil {
		t.Fatalf("init has left no position in %s", records)
	}
	ctx := context.Background()
	if _, err := c.database().Collection(records).ReplaceOne(ctx, bson.D{{Key: "_id", Value: c.record.Lookup("_id")}}, c.record,
		options.Replace().SetUpsert(true)); err != nil {
		t.Fatalf("putting the position back: %v", err)
	}
}
