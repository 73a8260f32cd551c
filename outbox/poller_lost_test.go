package outbox_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/outboxfake"
)

// A claim whose answer is lost was made all the same. Its rows are in nobody's hands
// until they are found again, and nothing of their keys may pass them meanwhile; nor may it
// when the look that would find them fails. Found by seeds: later rows were published at once,
// the lost ones after the reclaim.
func TestNothingPassesTheRowsOfAClaimWhoseAnswerWasLost(t *testing.T) {
	t.Parallel()
	for _, looks := range []string{"work", "fail", "are not answered"} {
		for seed := range uint64(16) {
			t.Run(fmt.Sprintf("looks %s/%d", looks, seed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { loseAnswers(t, looks, seed) })
			})
		}
	}
}

func loseAnswers(t *testing.T, looks string, seed uint64) {
	db, b := outboxfake.NewDB(), newBroker()
	r := rand.New(rand.NewPCG(seed, 7))
	for range 1500 {
		db.Insert(outboxfake.Row{Key: fmt.Sprint("k", r.IntN(25))})
	}
	fails := func(now bool) error { // Next alone claims and looks
		if now && r.IntN(20) == 0 {
			return errDown
		}
		return nil
	}
	p := start(t, db, b, setup{
		name: "one", kind: outboxfake.ForzeRow, delay: jitter(4 * time.Millisecond), room: 12,
		opt:    outbox.Options{Batch: 8, InFlight: 64, Attempts: 1000, BackoffMin: 50 * time.Millisecond, BackoffMax: time.Second},
		before: func(op string) error { return fails(looks == "fail" && op == "unfinished") },
		after: func(op string) error {
			return fails(op == "claim" || looks == "are not answered" && op == "unfinished")
		},
	})
	until(t, time.Hour, "drained", drained(db))
	for _, key := range inverted(b) {
		t.Errorf("an inversion in %s:\n%s", key, b.history(key))
	}
	p.stop(t)
}
