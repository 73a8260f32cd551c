package mongostream

import (
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/test/mongofake"
)

// fakeHouse is a source on a server that does what the test says.
type fakeHouse struct {
	*house
	fake *mongofake.Server
	from string // the position that the record begins with

	mu     sync.Mutex
	record bson.D // what findAndModify gives
	saved  []string
	fails  bool // the record cannot be written
}

func newFakeHouse(t *testing.T) *fakeHouse {
	t.Helper()
	schema, err := event.NewSchema(event.Forze, nil)
	if err != nil {
		t.Fatal(err)
	}
	fake := mongofake.New(t)
	h := &fakeHouse{fake: fake, from: mongofake.IdleToken(bson.Timestamp{T: 1, I: 1}), house: &house{t: t, opt: Options{
		Source: "orders", URL: fake.URL(t), Database: "shop", Collection: "outbox", Schema: schema, Holder: "test",
		ReconnectMin: time.Millisecond, ReconnectMax: 10 * time.Millisecond, MaxAwait: 20 * time.Millisecond, CheckpointEvery: 10 * time.Millisecond,
	}.WithDefaults()}}
	h.record = bson.D{
		{Key: "_id", Value: "orders"},
		{Key: "database", Value: "shop"},
		{Key: "collection", Value: "outbox"},
		{Key: "print", Value: h.opt.fingerprint()},
		{Key: "token", Value: bson.D{{Key: "_data", Value: h.from}}},
		{Key: "data", Value: h.from},
		{Key: "cluster_time", Value: bson.Timestamp{T: 1, I: 1}},
		{Key: "phase", Value: event.PhaseStreaming},
		{Key: "epoch", Value: int64(1)},
		{Key: "holder", Value: ""},
	}
	fake.Handle("findAndModify", h.findAndModify)
	return h
}

// findAndModify is the record: whoever asks for the lease gets it.
func (h *fakeHouse) findAndModify(c mongofake.Command) mongofake.Answer {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fails {
		return mongofake.Fail(91, "going down")
	}
	set := func(key string, value any) {
		for i := range h.record {
			if h.record[i].Key == key {
				h.record[i].Value = value
			}
		}
	}
	change := func(keys ...string) bson.RawValue {
		return c.Lookup(append([]string{"update", "0", "$set"}, keys...)...)
	}
	if holder, ok := change("holder", "$cond", "1", "$literal").StringValueOK(); ok {
		set("holder", holder)
	}
	if token, ok := change("token", "$literal").DocumentOK(); ok {
		set("token", token)
		set("data", tokenData(token))
		h.saved = append(h.saved, tokenData(token))
	}
	return mongofake.OK(bson.E{Key: "value", Value: h.record})
}

// positions are those that were stored.
func (h *fakeHouse) positions() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string{}, h.saved...)
}

func second(t uint32) bson.Timestamp { return bson.Timestamp{T: t, I: 1} }

// change is the insert of document n at second n+1.
func (h *fakeHouse) change(n int) bson.D {
	return mongofake.Insert("shop", "outbox", second(uint32(n)+1), 0, append(bson.D{{Key: "_id", Value: n}}, row(n)...))
}

// emit inserts documents.
func (h *fakeHouse) emit(ns ...int) {
	for _, n := range ns {
		h.fake.Emit(h.change(n))
	}
}

// opens are where the change streams were opened: the token or "time", empty for now.
func (h *fakeHouse) opens() []string {
	var all []string
	for _, c := range h.fake.Received("aggregate") {
		stage := c.Lookup("pipeline", "0", "$changeStream")
		token, _ := stage.Document().Lookup("startAfter", "_data").StringValueOK()
		if stage.Document().Lookup("startAtOperationTime").Type != 0 {
			token = "time"
		}
		if stage.Document().Lookup("resumeAfter").Type != 0 {
			token = "resumeAfter"
		}
		all = append(all, token)
	}
	return all
}
