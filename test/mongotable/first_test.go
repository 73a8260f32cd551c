package mongotable

import (
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Nothing stays pending that Kafka has, and a mark touches what the contract says alone.
func TestDocumentThatTheStreamBroughtIsMarkedPublished(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 3)
	h.Init(t)
	r := h.Start(t)
	r.WaitReady(soon)
	reads(t, r, "log")
	h.fill(t, 100, 7)
	h.fill(t, 20, 1)
	h.become(t, "published 120")
	if n := h.count(t, bson.D{{Key: "$or", Value: bson.A{
		field("published_at", nil), field("last_error", bson.D{{Key: "$ne", Value: nil}}), field("attempts", bson.D{{Key: "$ne", Value: 0}}),
		field("claim_token", bson.D{{Key: "$exists", Value: true}}),
	}}}); n != 0 {
		t.Errorf("%d documents with other fields than the contract's", n)
	}
	stop(t, r)
	h.judge(t, 0)
}

func TestPolledDocumentArrivesAndIsMarkedOrDeleted(t *testing.T) {
	t.Parallel()
	for _, claim := range []string{"row", "lease"} {
		for _, after := range []string{"mark", "delete"} {
			t.Run(claim+"/"+after, func(t *testing.T) {
				t.Parallel()
				h := newHouse(t, 3)
				h.Stream, h.Source = "capture: poll", "after_publish: "+after+"\npoll: {interval: 100ms, batch: 20, claim: "+claim+"}"
				h.Init(t)
				h.fill(t, 100, 5)
				r := h.Start(t)
				r.WaitReady(soon)
				h.fill(t, 20, 1)
				want := "published 120"
				if after == "delete" {
					want = ""
					h.k.ConsumeN(t, 120, soon, h.Topic)
				}
				h.become(t, want)
				stop(t, r)
				h.judge(t, 0)
			})
		}
	}
}

// Documents go that the stream brought; those that their writers had deleted already come once all the same.
func TestDeliveredDocumentsOfTheStreamAreDeleted(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 3)
	h.Source = "after_publish: delete\nsweep_every: 500ms"
	h.Init(t)
	r := h.Start(t)
	reads(t, r, "log")
	for range 20 {
		h.fill(t, 3, 3)
		h.n++
		h.putAndDelete(t, h.key(h.n), h.n, h.n, 0)
	}
	h.k.ConsumeN(t, 80, soon, h.Topic)
	h.become(t, "")
	stop(t, r)
	h.judge(t, 0)
}

// What the log does not bring in time, the sweep finds: a document that is due later, and one that failed
// and was requeued. Neither comes twice, and the former not early.
func TestSweepBringsWhatIsDueLaterAndWhatIsRequeued(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 1)
	h.Init(t)
	r := h.Start(t)
	reads(t, r, "log")
	h.fill(t, 2, 1)
	h.become(t, "published 2")
	due := time.Now().Add(3 * time.Second) // one clock for all
	later := document(3, "orders", "key 3", 0)
	for i := range later {
		if later[i].Key == "available_at" {
			later[i].Value = due
		}
	}
	if _, err := h.c.InsertOne(t.Context(), later); err != nil {
		t.Fatal(err)
	}
	failed := document(4, "orders", "key 4", 0)
	for i := range failed {
		if failed[i].Key == "status" {
			failed[i].Value = "failed"
		}
	}
	if _, err := h.c.InsertOne(t.Context(), failed); err != nil {
		t.Fatal(err)
	}
	h.set(t, numbered(1), bson.D{{Key: "status", Value: "failed"}})
	h.become(t, "failed 2, pending 1, published 1")
	h.set(t, field("status", "failed"), requeued)
	h.become(t, "published 4")
	stop(t, r)
	records := h.k.Consume(t, h.Topic)
	if got := all(records); got != "1 2 1 4 3" && got != "1 2 4 1 3" {
		t.Errorf("arrived %s, want 1 and 4 once more for the requeue, and 3 when it was due", got)
	}
	var doc struct {
		At time.Time `bson:"published_at"`
	}
	if err := h.c.FindOne(t.Context(), numbered(3)).Decode(&doc); err != nil || doc.At.Before(due.Truncate(time.Millisecond)) {
		t.Errorf("published at %s, due at %s (%v)", doc.At, due, err)
	}
}

// requeued is what forze's requeue_failed sets.
var requeued = bson.D{
	{Key: "status", Value: "pending"},
	{Key: "processing_at", Value: nil},
	{Key: "published_at", Value: nil},
	{Key: "last_error", Value: nil},
	{Key: "attempts", Value: 0},
	{Key: "available_at", Value: nil},
}
