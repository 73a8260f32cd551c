package mongoserver

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// filler is the database that takes what is written to fill the oplog.
const filler = "oplog_filler"

// FillOplog writes so many MiB to a database of its own.
func (s *Server) FillOplog(t testing.TB, mb int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := fill(ctx, s.Client(t), mb); err != nil {
		t.Fatalf("fill the oplog: %v", err)
	}
}

// OutrunOplog writes until the primary's oplog has dropped all that was in it at
// the call, so that every position of before is lost. The oplog should be small:
// see Options.OplogMB.
func (s *Server) OutrunOplog(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	client := s.Client(t)
	last, err := oplogEdge(ctx, client, -1)
	if err != nil {
		t.Fatalf("outrun the oplog: %v", err)
	}
	for {
		if err := fill(ctx, client, 4); err != nil {
			t.Fatalf("outrun the oplog: %v", err)
		}
		first, err := oplogEdge(ctx, client, 1)
		if err != nil {
			t.Fatalf("outrun the oplog: %v", err)
		}
		if first.After(last) {
			return
		}
	}
}

// fill writes documents of 1 MiB and removes them at once, so that only the
// oplog grows.
func fill(ctx context.Context, client *mongo.Client, mb int) error {
	collection := client.Database(filler).Collection("filler")
	content := make([]byte, 1<<20)
	_, _ = rand.Read(content)
	for range mb {
		if _, err := collection.InsertOne(ctx, bson.D{{Key: "content", Value: content}}); err != nil {
			return err
		}
	}
	_, err := collection.DeleteMany(ctx, bson.D{})
	return err
}

// oplogEdge is the time of the oplog's first entry (order 1) or last (order -1).
func oplogEdge(ctx context.Context, client *mongo.Client, order int) (bson.Timestamp, error) {
	var entry struct {
		TS bson.Timestamp `bson:"ts"`
	}
	err := client.Database("local").Collection("oplog.rs").
		FindOne(ctx, bson.D{}, options.FindOne().SetSort(bson.D{{Key: "$natural", Value: order}})).Decode(&entry)
	return entry.TS, err
}
