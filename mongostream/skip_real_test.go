package mongostream

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/test/mongoserver"
)

// The largest document that can be inserted comes; with a large _id besides no server can
// send its event, some break the connection over it. An operator passes by that one event,
// inside of its transaction, and nothing else.
func TestAnEventThatNoStreamCanCarryIsPassedByAloneByAnOperator(t *testing.T) {
	t.Parallel()
	server := mongoserver.Start(t, mongoserver.Options{CacheMB: 1024, OplogMB: 512})
	h := newHouse(t, server)
	h.insert(0)
	h.begin()
	sized := func(id string, size int) bson.D {
		doc := append(bson.D{{Key: "_id", Value: id}}, row(1)...)
		doc = append(doc, bson.E{Key: "filler", Value: []byte{}})
		raw, err := bson.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		doc[len(doc)-1].Value = bytes.Repeat([]byte{7}, size-len(raw))
		return doc
	}
	if _, err := h.outbox.InsertOne(ctx(t), sized("largest", 16<<20)); err != nil {
		t.Fatal(err)
	}
	giant := strings.Repeat("g", 12<<10)
	h.insert(2)
	h.transaction(func(ctx context.Context) error {
		if _, err := h.outbox.InsertOne(ctx, row(3)); err != nil {
			return err
		}
		_, err := h.outbox.InsertOne(ctx, sized(giant, 16<<20-40<<10))
		return err
	})
	if _, err := h.outbox.InsertOne(ctx(t), sized(giant+"2", 16<<20)); err != nil {
		t.Fatal(err)
	}
	h.insert(4)

	w := h.openKept()
	got, err := w.failure()
	if !slices.Equal(ids(got), []string{"1", "2", "3", "1"}) {
		t.Fatalf("read %v, then %v", ids(got), err)
	}
	var e *event.Error
	if !errors.As(err, &e) || e.Anchor != AnchorOversize || e.Class != event.Halt {
		t.Fatal(err)
	}
	w.Confirm(w.pos)
	w.close()

	found, err := SkipOversize(ctx(t), h.client, h.opt)
	if err != nil {
		t.Fatal(err)
	}
	if found.Bytes != 16<<20 || found.ID != `"`+giant+`2"` {
		t.Fatalf("found a document of %d bytes, %.40s…", found.Bytes, found.ID)
	}
	again := h.openKept()
	// What was not confirmed comes again: nobody can say that it was published.
	if got := ids(again.events(3)); !slices.Equal(got, []string{"3", "1", "4"}) {
		t.Fatal(got)
	}
	again.eventually("it is counted", func() bool { return again.ignored["oversize"] == 1 })
	again.Confirm(again.pos)
	again.close()
	if _, err := SkipOversize(ctx(t), h.client, h.opt); !errors.As(err, &e) || e.Anchor != AnchorOversize {
		t.Fatalf("without such a document: %v", err)
	}
}
