package publish

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/walrelay/walrelay/event"
)

// C33: the condition names principal, operation and topic; other topics flow; the grant ends it.
func TestForbiddenTopicWaitsForItsGrant(t *testing.T) {
	t.Parallel()
	for _, where := range []kmsg.Key{kmsg.Produce, kmsg.Metadata} {
		t.Run(where.Name(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, kfake.SeedTopics(2, "orders", "audit"))
				denied := r.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{where}, Topic: "audit", Err: kerr.TopicAuthorizationFailed, Count: -1})
				r.open()
				const n = 300
				for i := range uint64(n) {
					r.publish(record([]string{"orders", "audit"}[i%2], fmt.Sprintf("k%d", i%5), i), i)
				}
				r.wait("orders decided", r.decided(n/2))
				pass(30 * time.Second)
				r.mu.Lock()
				c := r.conditions["topic/audit"]
				for _, word := range []string{"audit", "User:ANONYMOUS", "Write"} {
					if !strings.Contains(c.What+c.Remedy, word) {
						t.Errorf("the condition does not name %s: %+v", word, c)
					}
				}
				r.mu.Unlock()
				denied.Remove()
				granted := time.Now()
				r.wait("all decided", r.decided(n))
				if d := time.Since(granted); d > time.Minute {
					t.Errorf("took %s after the grant", d)
				}
				got := r.consume("audit")
				if len(got) != n/2 {
					t.Errorf("%d arrived, want %d", len(got), n/2)
				}
				inOrder(t, got)
				if len(r.conditions) != 0 {
					t.Errorf("conditions that stay: %v", r.conditions)
				}
				r.close(n)
			})
		})
	}
}

// All topics forbidden means no producer id, which franz-go would take for final.
func TestForbiddenProducerRecoversWithoutRestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, kfake.SeedTopics(1, "a"))
		denied := r.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, Err: kerr.ClusterAuthorizationFailed, Count: -1, TopLevel: true})
		r.open()
		r.publish(record("a", "k", 0), 0)
		pass(time.Minute)
		r.mu.Lock()
		if c := r.conditions["kafka/producer"]; !strings.Contains(c.Remedy, "IdempotentWrite") {
			t.Errorf("the condition is %+v", c)
		}
		r.mu.Unlock()
		denied.Remove()
		r.wait("decided", r.decided(1))
		if len(r.conditions) != 0 {
			t.Errorf("conditions that stay: %v", r.conditions)
		}
		r.close(1)
	})
}

// C42, C40: a retriable refusal is shown with its reason after some tries.
func TestLastingRefusalIsShownWithItsReason(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, kfake.SeedTopics(1, "a"))
		short := r.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotEnoughReplicas, Count: -1})
		r.open()
		for i := range uint64(20) {
			r.publish(record("a", "k", i), i)
		}
		pass(2 * time.Minute)
		r.mu.Lock()
		if c := r.conditions["topic/a"]; c.Anchor != AnchorReplicas {
			t.Errorf("the condition is %+v", c)
		}
		r.mu.Unlock()
		short.Remove()
		r.wait("decided", r.decided(20))
		inOrder(t, r.consume("a"))
		pass(10 * time.Second)
		if len(r.conditions) != 0 {
			t.Errorf("conditions that stay: %v", r.conditions)
		}
		r.close(20)
	})
}

// C38: a broker that takes everything and answers nothing cannot keep Close.
func TestCloseEndsWithinItsGraceWhenTheBrokerHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, kfake.SeedTopics(1, "a"))
		r.open()
		r.publish(record("a", "k", 0), 0)
		r.wait("decided", r.decided(1))
		r.cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
			r.cluster.KeepControl()
			return nil, nil, true
		})
		for i := uint64(1); i <= 100; i++ {
			r.publish(record([]string{"a", "missing"}[i%2], "k", i), i)
		}
		pass(time.Second)
		began := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		err := r.pub.Close(ctx)
		if d := time.Since(began); d > 4*time.Second {
			t.Errorf("Close took %s", d)
		}
		if event.ClassOf(err) != event.Retry || !errors.Is(err, ErrClosed) {
			t.Errorf("Close: %v", err)
		}
		r.mu.Lock()
		for i := uint64(1); i <= 100; i++ {
			if err, _ := r.result(i); !errors.Is(err, ErrClosed) || event.ClassOf(err) != event.Retry {
				t.Errorf("ticket %d: %v", i, err)
			}
		}
		r.mu.Unlock()
		r.cluster.Close()
		r.oneResultEach(101)
	})
}

// C42: franz-go tries for ever without a word; the condition names topic and partition.
func TestUnansweredRecordsAreShownWithinFifteenSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, kfake.SeedTopics(1, "a"))
		r.open()
		r.publish(record("a", "k", 0), 0)
		r.wait("decided", r.decided(1))
		var answers atomic.Bool
		r.cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
			r.cluster.KeepControl()
			return nil, nil, !answers.Load()
		})
		r.publish(record("a", "k", 1), 1)
		pass(15 * time.Second)
		r.mu.Lock()
		if c := r.conditions["stalled/a"]; !strings.Contains(c.What, "1 records to partition 0") || c.Anchor != AnchorStalled {
			t.Errorf("conditions are %v", r.conditions)
		}
		r.mu.Unlock()
		answers.Store(true)
		r.wait("decided", r.decided(2))
		pass(10 * time.Second)
		if len(r.conditions) != 0 {
			t.Errorf("conditions that stay: %v", r.conditions)
		}
		r.close(2)
	})
}

func TestFullBoundBlocksUntilRoomOrCancel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.opts.MaxInFlightRecords = 10
		r.open()
		for i := range uint64(10) {
			r.publish(record("a", "k", i), i)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := r.pub.Publish(ctx, record("a", "k", 10), event.Ticket{Entry: 10}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Publish over the bound says %v", err)
		}
		if err := r.cluster.CreateTopic("a", 1, nil); err != nil {
			t.Fatal(err)
		}
		r.publish(record("a", "k", 10), 10)
		r.wait("decided", r.decided(11))
		inOrder(t, r.consume("a"))
		r.close(11)
	})
}

func TestPromisesCannotBeLoweredByExtraOptions(t *testing.T) {
	t.Parallel()
	for name, extra := range map[string][]kgo.Opt{
		"acks":          {kgo.RequiredAcks(kgo.LeaderAck())},
		"no idempotent": {kgo.DisableIdempotentWrite()},
		"cancel":        {kgo.AllowIdempotentProduceCancellation()},
		"auto create":   {kgo.AllowAutoTopicCreation()},
		"flush":         {kgo.ManualFlushing()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				defer r.cluster.Close()
				r.opts.Extra = extra
				pub, err := Open(context.Background(), r.opts, r.obs)
				if err == nil {
					if acks := pub.main.OptValue(kgo.RequiredAcks); acks != kgo.AllISRAcks() {
						t.Errorf("acks are %v", acks)
					}
					if name != "acks" {
						t.Error("Open took the option")
					}
					_ = pub.Close(context.Background())
				} else if event.ClassOf(err) != event.Halt {
					t.Errorf("the error is %v", err)
				}
			})
		})
	}
}

// Fail the n-th produce request, for every n, with every kind of error: every
// ticket has one result, no key is out of order, nothing accepted is lost.
func TestNthProduceFailsForEveryN(t *testing.T) {
	t.Parallel()
	kinds := []*kerr.Error{
		kerr.MessageTooLarge, kerr.TopicAuthorizationFailed, kerr.NotLeaderForPartition, kerr.OutOfOrderSequenceNumber,
		kerr.UnknownServerError, kerr.RequestTimedOut, kerr.InvalidRecord, kerr.UnknownTopicOrPartition,
	}
	for _, kind := range kinds {
		t.Run(kind.Message, func(t *testing.T) {
			t.Parallel()
			for n := 1; ; n++ {
				done := false
				synctest.Test(t, func(t *testing.T) { done = !failNth(t, n, kind) })
				if done || t.Failed() {
					if n < 4 {
						t.Errorf("the error was injected %d times only", n-1)
					}
					return
				}
			}
		})
	}
}

func failNth(t *testing.T, nth int, kind *kerr.Error) (hit bool) {
	r := newRig(t, kfake.SeedTopics(2, "a"), kfake.SeedTopics(1, "dlq"))
	r.opts.OnPoison, r.opts.DLQTopic = PoisonDLQ, "dlq"
	r.open()
	seen := 0
	f := r.cluster.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Produce}, Topic: "a", Err: kind, Count: 3, // a few in a row, then it is over
		When: func(kmsg.Request) bool { seen++; return seen >= nth },
	})
	rng := rand.New(rand.NewPCG(uint64(nth), 7))
	const n = 300
	for i := range uint64(n) {
		r.publish(record("a", fmt.Sprintf("k%d", i%9), i), i)
		if rng.IntN(40) == 0 {
			pass(time.Duration(rng.IntN(8)) * time.Millisecond)
		}
	}
	r.wait("all decided", r.decided(n))
	got := r.consume("a")
	inOrder(t, got)
	if want := n - r.letters; len(got) != want {
		t.Errorf("n=%d: %d arrived and %d are dead letters, want %d in all", nth, len(got), r.letters, n)
	}
	for i := range uint64(n) {
		if err, _ := r.result(i); err != nil {
			t.Errorf("n=%d: ticket %d: %v", nth, i, err)
		}
	}
	r.close(n)
	return f.Hits() > 0
}
