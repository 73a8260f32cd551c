package mongo

// C46 Watched collection dropped or renamed
//
// Source: damianiandrea/mongodb-nats-connector#13, PeerDB-io/peerdb#3087, votem/mongo-stream#6, estuary/connectors#3220.
//
// Ideal: everything inserted before and after is delivered; the drop is said once. After a
// rename the relay stops with a message: it follows no other collection by accident.

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/test/mongoserver"
)

func TestC46DroppedCollectionHaltsAfterItsLastEventAndIsFollowedWhenToldSo(t *testing.T) {
	t.Parallel()
	s := newScene(t, mongoserver.Shared(t))
	s.Init(t)
	r := s.Start(t)
	s.streams(r)
	ids := []string{s.insert("a"), s.insert("b")}
	s.drop()
	body := r.WaitNotReady(soon, `"halted"`)
	contains(t, "readyz", body, "collection "+s.Database+".outbox was dropped", "on_drop: continue", "mongo-dropped")
	s.delivers(r, ids...)
	if code, _ := r.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if code := s.Start(t, "--exit-on-halt").Wait(soon); code != 4 {
		t.Errorf("with --exit-on-halt it exits %d, want 4", code)
	}
	ids = append(ids, s.insert("a")) // into a collection of the same name

	s.Stream = "on_drop: continue\n"
	r = s.Start(t)
	s.delivers(r, ids...)
	for range 2 {
		ids = append(ids, s.insert("b"))
		s.drop()
		ids = append(ids, s.insert("b"), s.insert("c")) // before anybody has noticed
	}
	s.delivers(r, ids...)
	if n := strings.Count(r.Log(), `was dropped`); n > 3 {
		t.Errorf("three drops are said %d times:\n%s", n, r.Log())
	}
	if code, _ := r.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	r = s.Start(t)
	s.delivers(r, append(ids, s.insert("c"))...)
}

func TestC46RenamedCollectionIsNotFollowed(t *testing.T) {
	t.Parallel()
	s := newScene(t, mongoserver.Shared(t))
	s.Init(t)
	r := s.Start(t)
	s.streams(r)
	before := s.insert("a")
	client := s.Mongo.Client(t)
	if err := client.Database("admin").RunCommand(s.ctx(), bson.D{
		{Key: "renameCollection", Value: s.Database + ".outbox"}, {Key: "to", Value: s.Database + ".old"},
	}).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Database(s.Database).Collection("old").InsertOne(s.ctx(), bson.D{{Key: "id", Value: "not an event"}}); err != nil {
		t.Fatal(err)
	}
	contains(t, "readyz", r.WaitNotReady(soon, `"halted"`), "was renamed to old", "on_drop: continue")
	s.delivers(r, before)
	// mongorestore --drop, which makes the collection before it fills it, is a drop and a new one.
}

func (s *scene) drop() {
	s.t.Helper()
	if err := s.box.Drop(s.ctx()); err != nil {
		s.t.Fatal(err)
	}
}
