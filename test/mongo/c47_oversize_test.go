package mongo

// C47 Change event above 16 MB
//
// Source: meteor/meteor#14763, PeerDB-io/peerdb#3105, mongodb/mongo-kafka#79.
//
// Ideal: plain inserts up to the limit pass; an event that no stream can carry stops the source with one
// named failure; what was inserted afterwards is delivered once an operator has passed it by.
//
// A document of 16 MiB alone is not enough: an _id of some kilobytes stands in its event three times.

import (
	"bytes"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/test/mongoserver"
	"github.com/walrelay/walrelay/test/rig"
)

func TestC47EventThatNoStreamCanCarryIsNamedAndPassedByAlone(t *testing.T) {
	t.Parallel()
	s := newScene(t, mongoserver.Start(t, mongoserver.Options{CacheMB: 1024, OplogMB: 512}))
	s.Init(t)
	r := s.Start(t)
	s.streams(r)
	ids := []string{s.insert("a"), s.insertLarge("largest")}
	s.delivers(r, ids...)
	giant := strings.Repeat("g", 12<<10)
	s.insertLarge(giant)
	after := s.insert("b")
	body := r.WaitNotReady(soon, `"halted"`)
	contains(t, "readyz", body, "mongo-oversize", "larger than the 16 MiB", "--past-oversize")
	if n := strings.Count(r.Log(), "larger than the 16 MiB"); n > 3 {
		t.Errorf("it is said %d times:\n%s", n, r.Log())
	}
	if code, _ := r.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	s.says(0, words("position set --source orders --past-oversize"), giant, "16777216 bytes", "no other")
	r = s.Start(t)
	s.delivers(r, append(ids, after)...)
	if code, _ := r.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// insertLarge inserts an event whose document has the largest size that a server takes; its payload is small.
func (s *scene) insertLarge(id string) string {
	s.t.Helper()
	d := append(bson.D{{Key: "_id", Value: id}}, rig.Document("orders", "a", bson.D{{Key: "key", Value: "a"}})...)
	d = append(d, bson.E{Key: "filler", Value: []byte{}})
	raw, err := bson.Marshal(d)
	if err != nil {
		s.t.Fatal(err)
	}
	d[len(d)-1].Value = bytes.Repeat([]byte{7}, 16<<20-len(raw))
	if _, err := s.box.InsertOne(s.ctx(), d); err != nil {
		s.t.Fatal(err)
	}
	return d[1].Value.(string)
}
