package mongotable

import (
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/test/rig"
)

// content is all documents as they stand.
func (h *house) content(t *testing.T) string {
	t.Helper()
	cursor, err := h.c.Find(t.Context(), bson.D{})
	var docs []bson.Raw
	if err == nil {
		err = cursor.All(t.Context(), &docs)
	}
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(docs)
}

func TestReplayPublishesTheSameRecordsAndChangesNoDocument(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 3)
	h.Init(t)
	r := h.Start(t)
	r.WaitReady(soon)
	h.fill(t, 6, 1)
	first := h.k.ConsumeN(t, 6, soon, h.Topic)
	h.become(t, "published 6")
	before := h.content(t)
	span := []string{"--since", "2000-01-01", "--until", "2999-01-01"}
	h.command(t, 0, []string{"6 events would be published again (" + h.Topic + " 6)"}, append([]string{"replay", "--route", "orders", "--dry-run"}, span...)...)
	h.command(t, 0, []string{"orders: 1 event published again"}, "replay", "--event-id", eventID(3))
	again := h.k.ConsumeN(t, 7, soon, h.Topic)
	for _, old := range first {
		if string(old.Key) != h.key(3) {
			continue
		}
		copies := 0
		for _, rec := range again {
			if string(rec.Key) != string(old.Key) {
				continue
			}
			copies++
			if string(rec.Value) != string(old.Value) || rec.Partition != old.Partition || fmt.Sprint(rec.Headers) != fmt.Sprint(old.Headers) {
				t.Errorf("replayed %s %v, want %s %v", rec.Value, rec.Headers, old.Value, old.Headers)
			}
		}
		if copies != 2 {
			t.Errorf("%d copies of event 3, want 2", copies)
		}
	}
	h.command(t, 0, []string{"4 events published again"}, append([]string{"replay", "--route", "orders", "--limit", "4"}, span...)...)
	h.command(t, 0, []string{"0 events published again"}, append([]string{"replay", "--route", "other"}, span...)...)
	if got := len(h.k.ConsumeN(t, 11, soon, h.Topic)); got != 11 {
		t.Errorf("%d records, want 11", got)
	}
	if got := h.content(t); got != before {
		t.Errorf("documents changed:\n%s\nbefore:\n%s", got, before)
	}
	stop(t, r)
}

// Retention takes published documents that are old enough, and no others.
func TestRetentionDeletesOldPublishedDocumentsAlone(t *testing.T) {
	t.Parallel()
	for _, gear := range []string{"stream", "poll"} {
		t.Run(gear, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, 1)
			h.Stream = "capture: " + gear
			h.Source += "\nretention: {keep_published: 1h}"
			h.Init(t)
			h.fill(t, 6, 1)
			h.set(t, bson.D{{Key: "payload.n", Value: bson.D{{Key: "$lte", Value: 3}}}}, bson.D{{Key: "status", Value: "published"}, {Key: "published_at", Value: after(-2 * hour)}})
			h.set(t, numbered(4), bson.D{{Key: "status", Value: "published"}, {Key: "published_at", Value: after(-hour / 2)}})
			h.set(t, numbered(5), bson.D{{Key: "status", Value: "failed"}, {Key: "created_at", Value: after(-2 * hour)}})
			r := h.Start(t)
			rig.Eventually(t, "the end of old documents", soon, func() error {
				if n := h.count(t, bson.D{{Key: "payload.n", Value: bson.D{{Key: "$lte", Value: 3}}}}); n > 0 {
					return fmt.Errorf("%d are there", n)
				}
				return nil
			})
			h.become(t, "failed 1, published 2")
			stop(t, r)
		})
	}
}
