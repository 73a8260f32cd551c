package mongostream

import (
	"context"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/test/mongoserver"
)

// A host that hangs answers nothing and closes nothing. The lease is had anew from the
// next primary, and nothing comes twice.
func TestAFrozenPrimaryIsLeftWithinSeconds(t *testing.T) {
	t.Parallel()
	server := mongoserver.Start(t, mongoserver.Options{Nodes: 3})
	h := newHouse(t, server)
	h.begin()
	w := h.open()
	h.insert(1)
	w.events(1)
	writer, err := Connect(ctx(t), h.opt) // which notices a host that hangs
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = writer.Disconnect(context.Background()) })
	outbox := writer.Database(h.opt.Database).Collection(h.opt.Collection)
	frozen := server.Primary(t)
	server.Pause(t, frozen)
	began := time.Now()
	second := append(bson.D{{Key: "_id", Value: 2}}, row(2)...)
	h.until("the others have a primary", func() bool {
		ctx, cancel := context.WithTimeout(ctx(t), 3*time.Second)
		defer cancel()
		_, err := outbox.InsertOne(ctx, second)
		return err == nil || mongo.IsDuplicateKeyError(err)
	})
	elected := time.Since(began)
	got := w.events(1)
	if took := time.Since(began) - elected; got[0].id != "2" || took > 15*time.Second {
		t.Errorf("event %s after %v", got[0].id, took)
	}
	server.Continue(t, frozen)
	if _, err := outbox.InsertOne(ctx(t), row(3)); err != nil {
		t.Fatal(err)
	}
	if got := w.events(1); got[0].id != "3" {
		t.Errorf("event %s", got[0].id)
	}
	t.Logf("elected after %v", elected)
}
