package publish

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/walrelay/walrelay/event"
)

// Several sources, every kind of failure at random, records of every size.
func TestSeveralSourcesUnderRandomFailuresKeepTheirOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { storm(t, seed) })
		})
	}
}

func storm(t *testing.T, seed uint64) {
	r := newRig(t, kfake.SeedTopics(3, "a", "b"), kfake.SeedTopics(1, "dlq"))
	r.opts.OnPoison, r.opts.DLQTopic = PoisonDLQ, "dlq"
	r.opts.BatchMaxBytes, r.opts.MaxInFlightRecords = 4000, 200
	if seed%2 == 0 {
		r.opts.Linger = 0
	}
	r.open()
	kinds := []*kerr.Error{
		kerr.MessageTooLarge, kerr.TopicAuthorizationFailed, kerr.NotLeaderForPartition, kerr.UnknownServerError,
		kerr.InvalidTimestamp, kerr.NotEnoughReplicas, kerr.KafkaStorageError,
	}
	rng := rand.New(rand.NewPCG(seed, 1)) // the cluster's goroutine alone uses it
	var handles []*kfake.FaultHandle
	for _, kind := range kinds {
		for _, topic := range []string{"a", "b", "dlq"} {
			if class, _ := classify(kind); topic == "dlq" && class == event.Poison {
				continue // a dead letter that is refused stops the source
			}
			handles = append(handles, r.cluster.Fault(kfake.Fault{
				Keys: []kmsg.Key{kmsg.Produce}, Topic: topic, Err: kind, Count: -1, When: func(kmsg.Request) bool { return rng.IntN(60) == 0 },
			}))
		}
	}
	const sources, each = 4, 400
	var wg sync.WaitGroup
	for s := range uint64(sources) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 2+s))
			for i := range uint64(each) {
				n := s*each + i
				rec := record([]string{"a", "b"}[rng.IntN(2)], fmt.Sprintf("s%d-k%d", s, rng.IntN(5)), n)
				if rng.IntN(30) == 0 {
					rec.Value = make([]byte, 6000)
				}
				ticket, err := event.Ticket{Entry: n, Source: uint16(s)}, error(nil)
				if rng.IntN(50) == 0 {
					err = r.pub.Refuse(context.Background(), rec, ticket, errors.New("not this one"))
				} else {
					err = r.pub.Publish(context.Background(), rec, ticket)
				}
				if err != nil {
					t.Errorf("source %d, record %d: %v", s, i, err)
				}
				if rng.IntN(20) == 0 {
					pass(time.Duration(rng.IntN(10)) * time.Millisecond)
				}
			}
		})
	}
	wg.Wait()
	hits := 0
	for _, h := range handles {
		hits += h.Hits()
		h.Remove()
	}
	r.wait("all decided", r.decided(sources*each))
	a, b := r.consume("a"), r.consume("b")
	inOrder(t, a)
	inOrder(t, b)
	if got := len(a) + len(b) + r.letters; got != sources*each {
		t.Errorf("%d arrived and %d are dead letters, want %d in all", len(a)+len(b), r.letters, sources*each)
	}
	if hits == 0 {
		t.Error("no failure was injected")
	}
	r.close(sources * each)
}

// Close under load: a ticket is either not taken or has exactly one result.
func TestCloseUnderLoadLeavesNoTicketBehind(t *testing.T) {
	t.Parallel()
	for round := range 10 {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, kfake.SeedTopics(2, "a"))
			r.opts.MaxInFlightRecords = 50
			r.open()
			ctx, cancel := context.WithCancel(context.Background())
			var wg sync.WaitGroup
			var mu sync.Mutex
			taken := map[uint64]bool{}
			for s := range uint64(3) {
				wg.Go(func() {
					for i := uint64(0); ; i++ {
						n := s*1_000_000 + i
						topic := []string{"a", "missing", "no topic"}[min(i%20, 2)]
						if err := r.pub.Publish(ctx, record(topic, "k", n), event.Ticket{Entry: n, Source: uint16(s)}); err != nil {
							return
						}
						mu.Lock()
						taken[n] = true
						mu.Unlock()
					}
				})
			}
			pass(time.Duration(round*7) * time.Millisecond)
			grace, done := context.WithTimeout(context.Background(), time.Duration(round%3)*time.Millisecond)
			defer done()
			_ = r.pub.Close(grace)
			cancel()
			wg.Wait()
			r.cluster.Close()
			r.mu.Lock()
			defer r.mu.Unlock()
			for n := range taken {
				if len(r.results[n]) != 1 {
					t.Errorf("ticket %d has %d results", n, len(r.results[n]))
				}
			}
			if len(r.results) != len(taken) {
				t.Errorf("%d results for %d tickets", len(r.results), len(taken))
			}
		})
	}
}
