package mongostream

import (
	"context"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/test/mongoserver"
)

func reading(t *testing.T, c *Clock) event.Reading {
	t.Helper()
	r, err := c.Read(ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A server of its own: on the shared one others have transactions open.
func TestAnOpenTransactionIsSeenUntilItsCommitIsBelowTheEndOfTheLog(t *testing.T) {
	t.Parallel()
	server := mongoserver.Start(t, mongoserver.Options{Auth: true})
	h := newHouse(t, server)
	if err := h.outbox.Database().CreateCollection(ctx(t), h.opt.Collection); err != nil { // not in the transaction
		t.Fatal(err)
	}
	h.begin()
	clock := NewClock(h.opt)
	defer clock.Close(context.Background())
	calm := reading(t, clock)
	if calm.OldestMicros != calm.NowMicros {
		t.Errorf("nothing is open, and the oldest began %d µs ago", calm.NowMicros-calm.OldestMicros)
	}
	session, err := h.client.StartSession()
	if err != nil {
		t.Fatal(err)
	}
	defer session.EndSession(context.Background())
	if err := session.StartTransaction(); err != nil {
		t.Fatal(err)
	}
	in := mongo.NewSessionContext(ctx(t), session)
	id, err := h.outbox.InsertOne(in, bson.D{{Key: "x", Value: 1}})
	if err != nil {
		t.Fatal(err)
	}
	before := reading(t, clock)
	if _, err := h.outbox.InsertOne(ctx(t), bson.D{{Key: "x", Value: 2}}); err != nil {
		t.Fatal(err)
	}
	during := reading(t, clock)
	for _, r := range []event.Reading{before, during} {
		if r.OldestMicros >= r.NowMicros || r.OldestMicros < calm.NowMicros {
			t.Errorf("an open transaction that began after %d is not seen: %+v", calm.NowMicros, r)
		}
	}
	if during.OldestMicros != before.OldestMicros || during.At.Compare(before.At) <= 0 {
		t.Errorf("from %+v to %+v", before, during)
	}
	if err := session.CommitTransaction(in); err != nil {
		t.Fatal(err)
	}
	after := reading(t, clock)
	if after.OldestMicros != after.NowMicros {
		t.Errorf("committed, and still open: %+v", after)
	}
	// Its event lies between the readings.
	token := h.tokenOf(id.InsertedID)
	if event.AtToken(token).Compare(during.At) < 0 || event.AtToken(token).Compare(after.At) >= 0 {
		t.Errorf("the commit at %s is not between %s and %s", token, during.At, after.At)
	}

	server.AddRole(t, "narrow", mongoserver.Privilege{Database: h.opt.Database, Actions: []string{"find", "changeStream"}})
	server.AddUser(t, "relay", secret, mongoserver.Role{Name: "narrow", Database: "admin"})
	h.opt.URL = server.URLAs("relay", secret)
	narrow := NewClock(h.opt)
	defer narrow.Close(context.Background())
	if r := reading(t, narrow); r.OldestMicros != 0 || r.NowMicros == 0 || r.At.IsZero() {
		t.Errorf("without the right to see transactions: %+v", r)
	}
}

// tokenOf reads the stream from the record on, up to the insert of the document.
func (h *house) tokenOf(id any) string {
	h.t.Helper()
	cs, err := h.outbox.Watch(ctx(h.t), mongo.Pipeline{}, options.ChangeStream().SetStartAfter(h.record().Token))
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = cs.Close(context.Background()) }()
	for cs.Next(ctx(h.t)) {
		var e struct {
			Key struct {
				ID any `bson:"_id"`
			} `bson:"documentKey"`
		}
		if err := cs.Decode(&e); err != nil {
			h.t.Fatal(err)
		}
		if e.Key.ID == id {
			return tokenData(cs.ResumeToken())
		}
	}
	h.t.Fatal(cs.Err())
	return ""
}
