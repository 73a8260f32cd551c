package mongotable

import (
	"testing"

	"github.com/walrelay/walrelay/test/rig"
)

// What is written between init and the first start is in the stream and, but for documents that
// their own transaction deleted, in the collection. The catch-up leaves all of it to the stream.
func TestEventsBetweenInitAndTheFirstStartKeepTheirOrder(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 1)
	h.key = func(int) string { return "k" }
	h.Init(t)
	for h.n < 12 {
		h.fill(t, 1, 1)
		h.n++
		h.putAndDelete(t, "k", h.n, h.n, 0)
		h.fill(t, 2, 2)
	}
	r := h.Start(t)
	h.k.ConsumeN(t, h.n, soon, h.Topic)
	h.become(t, "published 9")
	stop(t, r)
	h.judge(t, 0)
}

// oldDocuments is a house whose collection has documents that are older than the position: those of an
// application that began before anybody thought of a relay.
func oldDocuments(t *testing.T, n int) *house {
	t.Helper()
	h := newHouse(t, 3)
	h.Source += "\npoll: {batch: 50, interval: 200ms, lease: 3s}"
	stream := h.Stream
	h.Stream = "capture: poll" // the collection, and no position
	h.Init(t)
	h.fill(t, n, 10)
	h.Stream = stream
	h.Init(t)
	return h
}

// C77 Rows that were there before the slot.
// Source: redpanda-data/connect#4584.
// Ideal: old documents are caught up first: nothing is lost, and every key keeps its order across the
// switch from the collection to the stream, also when the relay is killed on its way.
func TestC77OldDocumentsComeFirstAndInOrder(t *testing.T) {
	t.Parallel()
	h := oldDocuments(t, 500)
	r := h.Start(t)
	for range 25 { // while it catches up and after
		h.fill(t, 10, 5)
	}
	h.published(t)
	reads(t, r, "log")
	stop(t, r)
	h.judge(t, 0)
}

func TestC77KillsOnTheWayLoseNothing(t *testing.T) {
	t.Parallel()
	h := oldDocuments(t, 1000)
	const kills = 5
	for i := range kills {
		r := h.Start(t)
		h.progress(t, r)
		during(ms(i * 100))
		r.Kill()
		h.fill(t, 50, 5)
	}
	r := h.Start(t)
	h.fill(t, 100, 5)
	h.published(t)
	stop(t, r)
	// What one relay may have published and not marked: four batches.
	h.judge(t, kills*4*50)
}

// progress waits until the relay has published something.
func (h *house) progress(t *testing.T, r *rig.Relay) {
	t.Helper()
	r.Eventually("progress", soon, func() error {
		if publishedBy(t, r) == 0 {
			return errNone
		}
		return nil
	})
}
