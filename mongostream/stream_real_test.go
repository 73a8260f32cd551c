package mongostream

import (
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/test/mongoserver"
)

func TestInsertsComeInTheirOrderAndOnlyThey(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t))
	first := h.begin()
	if first.Phase != event.PhaseCreated || first.Data == "" {
		t.Fatalf("the record is %+v", first)
	}
	h.insert(1, 2, 3)
	w := h.open()
	if got := ids(w.events(3)); !slices.Equal(got, numbers(1, 3)) {
		t.Fatal(got)
	}
	if _, err := h.outbox.UpdateMany(ctx(t), bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: "status", Value: "published"}}}}); err != nil {
		t.Fatal(err)
	}
	h.insert(4)
	if got := ids(w.events(1)); got[0] != "4" {
		t.Fatal(got)
	}
	w.Confirm(w.pos)
	w.close()
	r := h.record()
	if r.Data != w.pos.Token || r.Phase != event.PhaseStreaming || r.Holder != "" || r.Events != 4 {
		t.Fatalf("stored %+v, want %s", r, w.pos)
	}
	h.insert(5)
	again := h.open()
	if got := ids(again.events(1)); got[0] != "5" {
		t.Fatal(got)
	}
}
