package rig

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/test/mongoserver"
)

// NewMongoHouse takes a database of a replica set and creates nothing else: Init does.
func NewMongoHouse(t testing.TB, m *mongoserver.Server, brokers []string, topic string) *House {
	t.Helper()
	return &House{Mongo: m, Database: m.NewDatabase(t), Brokers: brokers, Topic: topic, Preset: "forze"}
}

func (h *House) mongoSection(b *strings.Builder, name string) {
	url := h.URL
	if url == "" {
		url = h.Mongo.URL()
	}
	fmt.Fprintf(b, "  %s:\n    mongo:\n      url: %q\n      database: %s\n", name, url, h.Database)
	if !strings.Contains(h.Stream, "check_interval:") {
		b.WriteString("      check_interval: 1s\n")
	}
	indent(b, h.Stream, "      ")
}

// Outbox is the outbox collection.
func (h *House) Outbox(t testing.TB) *mongo.Collection {
	t.Helper()
	return h.Mongo.Client(t).Database(h.Database).Collection("outbox")
}

// Document is a pending event of the forze contract, with a fresh id.
func Document(route, key string, payload any) bson.D {
	id := uuid.Must(uuid.NewV7()).String()
	now := time.Now().UTC()
	return bson.D{
		{Key: "id", Value: id},
		{Key: "event_id", Value: id},
		{Key: "outbox_route", Value: route},
		{Key: "event_type", Value: "Tested"},
		{Key: "status", Value: "pending"},
		{Key: "attempts", Value: int32(0)},
		{Key: "occurred_at", Value: now},
		{Key: "created_at", Value: now},
		{Key: "available_at", Value: nil},
		{Key: "ordering_key", Value: key},
		{Key: "payload", Value: payload},
	}
}

// InsertDocuments writes events with the given keys into the outbox, one transaction; the
// payload holds the number of the event in it, from 1.
func (h *House) InsertDocuments(t testing.TB, route string, keys ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	outbox := h.Outbox(t)
	documents := make([]bson.D, len(keys))
	for i, k := range keys {
		documents[i] = Document(route, k, bson.D{{Key: "n", Value: i + 1}, {Key: "key", Value: k}})
	}
	err := outbox.Database().Client().UseSession(ctx, func(ctx context.Context) error {
		_, err := mongo.SessionFromContext(ctx).WithTransaction(ctx, func(ctx context.Context) (any, error) {
			return outbox.InsertMany(ctx, documents)
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
