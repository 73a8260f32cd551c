package publish

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/walrelay/walrelay/event"
)

// sweeper is a desk that lets keys go again: what waits behind a key is published
// by a source of its own, in order, and the key is opened when nothing is left. This is what
// outbox.Gate and the sweep do, in miniature.
type sweeper struct {
	r *rig

	mu     sync.Mutex
	behind map[string][]waiting // a held key, and what waits behind it
	poison int
	told   map[uint64]chan error // results of the sweep's own tickets
}

type waiting struct {
	n   uint64
	rec *event.Record
}

// sweepSource is the sweep's index; tickets of its own begin at sweepTickets.
const (
	sweepSource  = 99
	sweepTickets = 1 << 32
)

func (s *sweeper) Held(source uint16, key []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, held := s.behind[string(key)]
	return held && source != sweepSource
}

func (s *sweeper) Park(ctx context.Context, rec *event.Record, t event.Ticket, why error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list, held := s.behind[string(rec.Key)]
	switch {
	case !errors.Is(why, event.ErrHeld):
		s.poison++ // a human drops it in a moment
		s.behind[string(rec.Key)] = list
	case !held:
		return errNotHeld
	default:
		s.behind[string(rec.Key)] = append(list, waiting{t.Entry, rec})
	}
	return nil
}

func (s *sweeper) Lettered(*event.Record, event.Ticket, error)    {}
func (s *sweeper) Return(*event.Record, event.Ticket, error) bool { return false }

// sweep goes over the held keys until it is told to end and none is held.
func (s *sweeper) sweep(ended func() bool) {
	next := uint64(sweepTickets)
	for {
		s.mu.Lock()
		keys := make([]string, 0, len(s.behind))
		for k := range s.behind {
			keys = append(keys, k)
		}
		s.mu.Unlock()
		slices.Sort(keys)
		if len(keys) == 0 && ended() {
			return
		}
		for _, k := range keys {
			s.mu.Lock()
			list := s.behind[k]
			if len(list) == 0 {
				delete(s.behind, k)
				s.mu.Unlock()
				continue
			}
			s.behind[k] = nil
			s.mu.Unlock()
			if !slices.IsSortedFunc(list, func(a, b waiting) int { return int(a.n) - int(b.n) }) {
				s.r.t.Errorf("key %s: put aside out of order", k)
			}
			var results []chan error
			for _, w := range list {
				done := make(chan error, 1)
				s.mu.Lock()
				s.told[next] = done
				s.mu.Unlock()
				if err := s.r.pub.Publish(context.Background(), w.rec, event.Ticket{Entry: next, Source: sweepSource}); err != nil {
					s.r.t.Errorf("sweep: %v", err)
					return
				}
				next++
				results = append(results, done)
			}
			for _, done := range results {
				if err := <-done; err != nil {
					s.r.t.Errorf("sweep: %v", err)
				}
			}
		}
		pass(3 * time.Millisecond)
	}
}

// Keys are held, swept and opened while their records are published, under every kind
// of failure: nothing is lost, nothing comes twice, and no key goes out of order.
func TestKeysHeldAndOpenedUnderLoadKeepTheirOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { heldStorm(t, seed) })
		})
	}
}

func heldStorm(t *testing.T, seed uint64) {
	r := newRig(t, kfake.SeedTopics(2, "a", "b"))
	s := &sweeper{r: r, behind: map[string][]waiting{}, told: map[uint64]chan error{}}
	r.opts.OnPoison, r.opts.Desk = PoisonPark, s
	r.opts.MaxInFlightRecords, r.opts.BatchMaxBytes = 200, 4000
	if seed%2 == 0 {
		r.opts.Linger = 0
	}
	count := r.opts.Result
	r.opts.Result = func(t event.Ticket, err error) {
		if t.Source == sweepSource {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.told[t.Entry] <- err
			return
		}
		count(t, err)
	}
	r.open()
	rng := rand.New(rand.NewPCG(seed, 11)) // the cluster's goroutine alone uses it
	hits := 0
	var handles []*kfake.FaultHandle
	for _, kind := range []*kerr.Error{kerr.TopicAuthorizationFailed, kerr.KafkaStorageError, kerr.UnknownServerError} {
		handles = append(handles, r.cluster.Fault(kfake.Fault{
			Keys: []kmsg.Key{kmsg.Produce}, Err: kind, Count: -1, When: func(kmsg.Request) bool { return rng.IntN(40) == 0 },
		}))
	}
	const sources, each = 3, 500
	var wg, sweeping sync.WaitGroup
	ended := make(chan struct{})
	sweeping.Go(func() {
		s.sweep(func() bool {
			select {
			case <-ended:
				return true
			default:
				return false
			}
		})
	})
	for src := range uint64(sources) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 20+src))
			for i := range uint64(each) {
				n := src*each + i
				// A key has one topic: across topics there is no order to keep.
				k := rng.IntN(5)
				rec := record([]string{"a", "b"}[k%2], fmt.Sprintf("s%d-k%d", src, k), n)
				if rng.IntN(30) == 0 {
					rec.Value = make([]byte, 6000)
				}
				ticket, err := event.Ticket{Entry: n, Source: uint16(src)}, error(nil)
				if rng.IntN(40) == 0 {
					err = r.pub.Refuse(context.Background(), rec, ticket, errors.New("not this one"))
				} else {
					err = r.pub.Publish(context.Background(), rec, ticket)
				}
				if err != nil {
					t.Errorf("source %d, record %d: %v", src, i, err)
				}
				switch rng.IntN(25) {
				case 0:
					pass(time.Duration(rng.IntN(10)) * time.Millisecond)
				case 1: // somebody else holds a key, at any moment
					s.mu.Lock()
					key := fmt.Sprintf("s%d-k%d", src, rng.IntN(5))
					if _, held := s.behind[key]; !held {
						s.behind[key] = nil
					}
					s.mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	for _, h := range handles {
		hits += h.Hits()
		h.Remove()
	}
	r.wait("all decided", r.decided(sources*each))
	close(ended)
	sweeping.Wait()
	a, b := r.consume("a"), r.consume("b")
	inOrder(t, a)
	inOrder(t, b)
	if got := len(a) + len(b) + s.poison; got != sources*each {
		t.Errorf("%d arrived and %d are parked, want %d in all", len(a)+len(b), s.poison, sources*each)
	}
	if hits == 0 || len(s.told) < 50 {
		t.Errorf("%d failures were injected, %d records waited behind a key", hits, len(s.told))
	}
	r.close(sources * each)
}
