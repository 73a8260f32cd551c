package mongotable

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/test/mongoserver"
)

// losePosition takes the remembered position away, as somebody does who tidies up.
func (h *house) losePosition(t *testing.T) {
	t.Helper()
	if _, err := h.c.Database().Collection("walrelay_sources").DeleteMany(context.Background(), bson.D{}); err != nil {
		t.Fatal(err)
	}
}

// writing has an application write one document after the other until the answer is called.
func (h *house) writing(t *testing.T, every time.Duration) (end func()) {
	t.Helper()
	var wg sync.WaitGroup
	over := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case <-over:
				return
			case <-time.After(every):
				h.fill(t, 1, 1)
			}
		}
	})
	return sync.OnceFunc(func() { close(over); wg.Wait() })
}

// A catch-up that is killed wherever it stands goes on where it was: nothing is lost, keys keep
// their order, and no more comes twice than was under way at a kill. An application writes all the time.
func TestCatchUpIsResumedWhereverItIsKilled(t *testing.T) {
	t.Parallel()
	h := oldDocuments(t, 1500)
	h.Source = "after_publish: mark\nsweep_every: 500ms\npoll: {interval: 100ms, lease: 3s, batch: 20}"
	h.Kafka += "\nin_flight_records: 50"
	end := h.writing(t, ms(20))
	defer end()
	const kills = 6
	for i := range kills {
		done := h.count(t, field("status", "published"))
		r := h.Start(t)
		if i%3 > 0 { // in the middle
			r.Eventually("progress", soon, func() error {
				if h.count(t, field("status", "published")) == done {
					return errNone
				}
				return nil
			})
			during(rand.N(ms(100)))
		} else { // wherever it is
			during(rand.N(ms(700)))
		}
		r.Kill()
		t.Logf("kill %d at %s", i, h.states(t))
	}
	r := h.Start(t)
	reads(t, r, "log")
	end()
	h.fill(t, 20, 1)
	h.published(t)
	stop(t, r)
	// Four batches and one, and what the stream had acknowledged and not marked, which is less.
	h.judge(t, kills*5*20)
}

// Two relays were killed one after the other: later documents of each key are due before the one whose turn
// it is, and there are more of them than a claim takes.
func TestDocumentsThatWereGivenBackTwiceHoldNobodyUp(t *testing.T) {
	t.Parallel()
	for _, gear := range []string{"poll", "stream"} {
		t.Run(gear, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, 3)
			h.Stream = "capture: poll"
			h.Source = "after_publish: mark\nsweep_every: 500ms\npoll: {interval: 100ms, batch: 20}"
			h.Kafka += "\nin_flight_records: 50"
			h.Init(t)
			h.fill(t, 200, 10)
			h.set(t, bson.D{{Key: "payload.n", Value: bson.D{{Key: "$lte", Value: 80}}}}, bson.D{{Key: "attempts", Value: 1}, {Key: "available_at", Value: after(-time.Minute)}})
			h.set(t, bson.D{{Key: "payload.n", Value: bson.D{{Key: "$lte", Value: 20}}}}, bson.D{{Key: "attempts", Value: 2}, {Key: "available_at", Value: after(0)}})
			if gear == "stream" {
				h.Stream = ""
				h.Init(t)
			}
			r := h.Start(t)
			h.published(t)
			stop(t, r)
			h.judge(t, 0)
		})
	}
}

// A source that reads the stream where it can has its position lost while it is stopped: it takes what is
// pending from the collection, and rejoins the stream without a gap. on_gap: catch_up does the same.
func TestLostPositionIsCaughtUpAndTheStreamRejoinedWithoutAGap(t *testing.T) {
	t.Parallel()
	for _, stream := range []string{"capture: auto", "on_gap: catch_up"} {
		for _, how := range []string{"outrun", "removed"} {
			if stream != "capture: auto" && how == "removed" {
				continue // no position at all is for init to make
			}
			t.Run(stream+"/"+how, func(t *testing.T) {
				t.Parallel()
				m := mongoserver.Shared(t)
				if how == "outrun" {
					m = mongoserver.Start(t, mongoserver.Options{OplogMB: 10})
				}
				h := houseOn(t, m, 3)
				h.Stream = stream
				h.Init(t)
				r := startAll(t, h.House)[0]
				reads(t, r, "log")
				h.fill(t, 50, 5)
				h.published(t)
				stop(t, r)
				h.fill(t, 100, 5)
				if how == "outrun" {
					m.OutrunOplog(t)
				} else {
					h.losePosition(t)
				}
				end := h.writing(t, ms(20)) // across the way back
				r = h.Start(t)
				reads(t, r, "log")
				during(time.Second)
				end()
				h.fill(t, 20, 1)
				h.published(t)
				r.WaitReady(soon)
				stop(t, r)
				h.judge(t, 0)
			})
		}
	}
}

// A relay that is stopped at a position which is lost says so and publishes nothing, unless told to.
func TestLostPositionStopsASourceThatWasNotToldToCatchUp(t *testing.T) {
	t.Parallel()
	h := houseOn(t, mongoserver.Start(t, mongoserver.Options{OplogMB: 10}), 3)
	h.Init(t)
	r := startAll(t, h.House)[0]
	h.fill(t, 10, 5)
	h.published(t)
	stop(t, r)
	h.fill(t, 10, 5)
	h.Mongo.OutrunOplog(t)
	r = h.Start(t)
	r.WaitNotReady(soon, "oplog")
	if got := h.states(t); got != "pending 10, published 10" {
		t.Errorf("documents are %s", got)
	}
	stop(t, r)
	h.Stream = "on_gap: catch_up"
	r = startAll(t, h.House)[0]
	h.published(t)
	stop(t, r)
	h.judge(t, 0)
}

// C76 Ten random kills.
// Source: risingwavelabs/risingwave#14060, apache/seatunnel#11864.
// Ideal: nothing is lost or out of order, and duplicates are no more than a kill had under way; no document
// that Kafka has stays pending. (Kills every 1 to 3 s.)
func TestC76RandomKillsOfTheStreamLeaveNothingPendingThatKafkaHas(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 3)
	h.Init(t)
	end := h.writing(t, ms(5))
	defer end()
	const kills = 8
	for range kills {
		r := h.Start(t)
		h.progress(t, r)
		during(ms(500) + rand.N(2*time.Second))
		r.Kill()
	}
	end()
	r := startAll(t, h.House)[0]
	h.published(t)
	stop(t, r)
	// The lease of a killed reader runs for seconds, and what its marks did not say comes again.
	h.judge(t, kills*600)
}
