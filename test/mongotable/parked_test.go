package mongotable

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/test/rig"
)

// limit is the largest record that the topics of these tests take at first.
const limit = 3000

// narrow is a house whose topic takes small records alone.
func narrow(t *testing.T, stream, after string) *house {
	t.Helper()
	h := newHouse(t, 1)
	h.Topic = h.k.Topic(t, 1, map[string]string{"max.message.bytes": fmt.Sprint(limit)})
	h.Stream = stream
	h.Source = "after_publish: " + after + "\nsweep_every: 500ms\npoll: {interval: 200ms, lease: 3s}"
	h.Init(t)
	return h
}

// raise lets the topic take larger records.
func (h *house) raise(t *testing.T) {
	t.Helper()
	resp, err := h.k.Admin(t).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "max.message.bytes", Value: new("1000000")}}, h.Topic)
	if err == nil {
		_, err = resp.On(h.Topic, func(r *kadm.AlterConfigsResponse) error { return r.Err })
	}
	if err != nil {
		t.Fatal(err)
	}
}

type entry struct {
	ID         int64
	State, Key string
	Reason     string
}

func (h *house) parked(t *testing.T) (list []entry) {
	t.Helper()
	out, code := h.Command(t, "parked", "list", "--json")
	if code != 0 {
		t.Fatalf("parked list exited %d:\n%s", code, out)
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return list
}

// parkedDocuments is how many are put aside.
func (h *house) parkedDocuments(t *testing.T) int {
	t.Helper()
	n, err := h.c.Database().Collection("walrelay_parked").CountDocuments(t.Context(), bson.D{{Key: "_id", Value: bson.D{{Key: "$type", Value: "number"}}}})
	if err != nil {
		t.Fatal(err)
	}
	return int(n)
}

func (h *house) nothingAside(t *testing.T, r *rig.Relay) {
	t.Helper()
	r.Eventually("nothing put aside", soon, func() error {
		if n := h.parkedDocuments(t); n > 0 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
}

// A poison document in the middle of its key: it is put aside, the later ones of its key wait, over a
// restart too; those of other keys flow. Told to go again, they arrive in order, and afterwards the
// key is as free as any.
func TestPoisonInTheMiddleOfItsKeyHoldsThatKeyAlone(t *testing.T) {
	t.Parallel()
	for _, gear := range []string{"stream", "poll"} {
		t.Run(gear, func(t *testing.T) {
			t.Parallel()
			poisonHoldsItsKey(t, narrow(t, "capture: "+gear, "mark"))
		})
	}
}

func poisonHoldsItsKey(t *testing.T, h *house) {
	r := h.Start(t)
	r.WaitReady(soon)
	h.put(t, "a", 1, 1, 0)
	h.put(t, "a", 2, 2, 2*limit)
	h.put(t, "a", 3, 4, 0)
	h.put(t, "b", 5, 6, 0)
	if got := numbers(h.k.ConsumeN(t, 3, soon, h.Topic)); got["a"] != "1" || got["b"] != "5 6" {
		t.Fatalf("arrived %v", got)
	}
	r.Eventually("the entry", soon, func() error {
		if list := h.parked(t); len(list) == 0 || list[0].State != "parked" || list[0].Key != "a" {
			return fmt.Errorf("entries %+v", list)
		}
		return nil
	})
	h.put(t, "a", 7, 7, 0)
	h.put(t, "b", 8, 8, 0)
	h.k.ConsumeN(t, 4, soon, h.Topic)
	id := fmt.Sprint(h.parked(t)[0].ID)
	h.command(t, 0, []string{"too large", eventID(2), "orders"}, "parked", "show", id)
	stop(t, r)

	h.put(t, "a", 9, 9, 0)
	r = h.Start(t)
	r.WaitReady(soon)
	h.put(t, "a", 10, 10, 0)
	h.put(t, "b", 11, 100, 0)
	if got := numbers(h.k.ConsumeN(t, 4+90, soon, h.Topic)); got["a"] != "1" {
		t.Fatalf("after a restart the key was not held: %s", got["a"])
	}
	h.become(t, "failed 1, pending 5, published 94")

	// Told while nobody reads; a relay that starts knows the new limit at once.
	stop(t, r)
	h.raise(t)
	h.command(t, 0, nil, "parked", "retry", "--all")
	r = h.Start(t)
	h.nothingAside(t, r)
	const inOrder = "1 2 3 4 7 9 10"
	if got := numbers(h.k.ConsumeN(t, 100, soon, h.Topic)); got["a"] != inOrder {
		t.Errorf("after the retry there are %q, want %q", got["a"], inOrder)
	}
	h.put(t, "a", 101, 102, 0)
	if got := numbers(h.k.ConsumeN(t, 102, soon, h.Topic)); got["a"] != inOrder+" 101 102" {
		t.Errorf("the key is not free: %q", got["a"])
	}
	h.become(t, "published 102")
	if n := h.count(t, field("last_error", bson.D{{Key: "$ne", Value: nil}})); n > 0 {
		t.Errorf("%d documents have an error still", n)
	}
	stop(t, r)
	if n := len(h.k.Consume(t, h.Topic)); n != 102 {
		t.Errorf("%d records for 102 documents", n)
	}
}

// What is dropped lets its key go on without it.
func TestDroppedPoisonLetsItsKeyGoOn(t *testing.T) {
	t.Parallel()
	for _, gear := range []string{"stream", "poll"} {
		t.Run(gear, func(t *testing.T) {
			t.Parallel()
			h := narrow(t, "capture: "+gear, "mark")
			r := startAll(t, h.House)[0]
			h.put(t, "a", 1, 1, 0)
			h.put(t, "a", 2, 2, 2*limit)
			h.put(t, "a", 3, 3, 0)
			h.put(t, "b", 4, 4, 0)
			h.become(t, "failed 1, pending 1, published 2")
			list := h.parked(t)
			h.command(t, 0, nil, "parked", "drop", fmt.Sprint(list[0].ID))
			h.become(t, "failed 1, published 3")
			h.nothingAside(t, r)
			h.put(t, "a", 5, 5, 0)
			if got := numbers(h.k.ConsumeN(t, 4, soon, h.Topic)); got["a"] != "1 3 5" {
				t.Errorf("arrived %v", got)
			}
			h.become(t, "failed 1, published 4")
			stop(t, r)
		})
	}
}

// Behind a poison document wait some that stay in the collection and some that their writer has
// deleted: the former are found again there, the latter are kept whole. They arrive in one order all the same.
func TestDeletedAndKeptDocumentsBehindAHeldKeyArriveInOneOrder(t *testing.T) {
	t.Parallel()
	for _, poison := range []string{"stays", "deleted"} {
		t.Run(poison, func(t *testing.T) {
			t.Parallel()
			h := narrow(t, "", "delete")
			r := startAll(t, h.House)[0] // what is deleted while the collection is read comes with the stream
			h.put(t, "a", 1, 1, 0)
			if poison == "stays" {
				h.put(t, "a", 2, 2, 2*limit)
			} else {
				h.putAndDelete(t, "a", 2, 2, 2*limit)
			}
			h.put(t, "a", 3, 3, 0)
			h.putAndDelete(t, "a", 4, 4, 0)
			h.put(t, "a", 5, 5, 0)
			h.putAndDelete(t, "a", 6, 6, 0)
			h.put(t, "b", 7, 7, 0)
			if got := numbers(h.k.ConsumeN(t, 2, soon, h.Topic)); got["a"] != "1" || got["b"] != "7" {
				t.Fatalf("arrived %v", got)
			}
			stop(t, r)
			h.raise(t)
			h.command(t, 0, nil, "parked", "retry", "--all")
			r = h.Start(t)
			h.nothingAside(t, r)
			h.put(t, "a", 8, 8, 0)
			if got := numbers(h.k.ConsumeN(t, 8, soon, h.Topic)); got["a"] != "1 2 3 4 5 6 8" {
				t.Errorf("arrived %v", got)
			}
			h.become(t, "")
			stop(t, r)
		})
	}
}

// A drain waits for what was there, and not for what is behind a parked event.
func TestDrainOfAPolledCollectionWaitsForItsDocuments(t *testing.T) {
	t.Parallel()
	h := narrow(t, "capture: poll", "mark")
	h.put(t, "a", 1, 1, 0)
	h.put(t, "b", 2, 2, 2*limit)
	h.put(t, "b", 3, 3, 0)
	out := h.command(t, 5, []string{"not published", "runbook.md#drain-incomplete"}, "drain", "--timeout", "2s")
	if !strings.Contains(out, "3 ") {
		t.Errorf("it does not say how many: %s", out)
	}
	r := h.Start(t)
	h.command(t, 0, []string{"orders: drained", "1 key is held by parked events"}, "drain", "--timeout", "50s")
	h.become(t, "failed 1, pending 1, published 1")
	stop(t, r)
}

// The same of a stream: it waits for the position, and whoever reads it not is told.
func TestDrainWaitsForTheStreamAndExitsFiveWhenNobodyReadsIt(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 3)
	h.Init(t)
	h.fill(t, 3, 1)
	h.command(t, 5, []string{"not drained after 2s", "runbook.md#drain-incomplete"}, "drain", "--timeout", "2s")
	r := h.Start(t)
	h.command(t, 0, []string{"orders: drained"}, "drain", "--timeout", "50s")
	if got := len(h.k.Consume(t, h.Topic)); got != 3 {
		t.Errorf("%d records after the drain, want 3", got)
	}
	if got := h.states(t); got != "published 3" {
		t.Errorf("after the drain the documents are %s", got)
	}
	stop(t, r)
}
