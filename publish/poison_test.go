package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/walrelay/walrelay/event"
)

// refuseRecord makes the broker refuse each batch of topic that holds value.
func (r *rig) refuseRecord(topic, value string, err *kerr.Error) *kfake.FaultHandle {
	return r.cluster.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Produce}, Topic: topic, Err: err, Count: -1,
		When: func(kreq kmsg.Request) bool {
			for _, t := range kreq.(*kmsg.ProduceRequest).Topics {
				for _, p := range t.Partitions {
					if strings.Contains(string(p.Records), value) {
						return true
					}
				}
			}
			return false
		},
	})
}

const mark = "THE-CULPRIT"

// C31: the broker refuses a batch and cannot say which record is to blame.
func TestRefusedRecordIsFoundAndItsNeighboursArriveOnce(t *testing.T) {
	t.Parallel()
	for _, policy := range []PoisonPolicy{PoisonStop, PoisonDLQ} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, kfake.SeedTopics(1, "a", "dlq"))
				r.opts.OnPoison, r.opts.DLQTopic = policy, "dlq"
				r.open()
				r.refuseRecord("a", mark, kerr.MessageTooLarge)
				const n, bad = 500, 200
				for i := range uint64(n) {
					rec := record("a", fmt.Sprintf("k%d", i%5), i)
					if i == bad {
						rec.Value = []byte(mark)
						rec.Headers = append(rec.Headers, event.Header{Key: "x", Value: []byte("y")})
					}
					// A second source shares the partition.
					if err := r.pub.Publish(context.Background(), rec, event.Ticket{Entry: i, Source: uint16(i % 2)}); err != nil {
						t.Fatal(err)
					}
				}
				r.wait("all decided", r.decided(n))
				got := r.consume("a")
				inOrder(t, got)
				if policy == PoisonDLQ {
					if len(got) != n-1 {
						t.Errorf("%d arrived, want %d", len(got), n-1)
					}
					letters := r.consume("dlq")
					if len(letters) != 1 || string(letters[0].Value) != mark || string(letters[0].Key) != "k0" {
						t.Fatalf("letters: %v", letters)
					}
					for i := range uint64(n) {
						if err, _ := r.result(i); err != nil {
							t.Errorf("ticket %d: %v", i, err)
						}
					}
				} else {
					r.stoppedAt(bad, n, got)
				}
				r.close(n)
			})
		})
	}
}

// stoppedAt checks that source 0 (even numbers) ended at bad, and the other one did not.
func (r *rig) stoppedAt(bad, n uint64, got []*kgo.Record) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range n {
		err, _ := r.result(i)
		switch {
		case i%2 == 1 || i < bad:
			if err != nil {
				r.t.Errorf("ticket %d: %v", i, err)
			}
		case i == bad:
			var e *event.Error
			if !errors.As(err, &e) || e.Class != event.Halt || e.Anchor != AnchorPoison || e.Remedy == "" || errors.Is(err, ErrStopped) {
				r.t.Errorf("the culprit's result is %v", err)
			}
		case !errors.Is(err, ErrStopped) || event.ClassOf(err) != event.Halt:
			r.t.Errorf("ticket %d came after the culprit: %v", i, err)
		}
	}
	if want := int(bad/2 + n/2); len(got) != want {
		r.t.Errorf("%d arrived, want %d", len(got), want)
	}
	err := r.pub.Publish(context.Background(), record("a", "k", n), event.Ticket{Entry: n})
	if !errors.Is(err, ErrStopped) {
		r.t.Errorf("Publish for a stopped source says %v", err)
	}
}

func TestSizeLimitIsExactAndKnownBeforeSending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		limit := "20000"
		if err := r.cluster.CreateTopic("a", 1, map[string]string{"max.message.bytes": limit}); err != nil {
			t.Fatal(err)
		}
		if err := r.cluster.CreateTopic("dlq", 1, nil); err != nil {
			t.Fatal(err)
		}
		r.opts.OnPoison, r.opts.DLQTopic = PoisonDLQ, "dlq"
		r.open()
		refusals := r.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Observe: true, Count: -1})
		sized := func(n uint64, size int64) *event.Record {
			rec := record("a", "k", n)
			rec.Value = nil
			it := newItem(rec, event.Ticket{})
			// The length prefixes grow to three bytes each.
			rec.Value = make([]byte, size-batchSize(&it.rec)-2-2)
			it.free()
			return rec
		}
		r.publish(record("a", "k", 0), 0)
		r.wait("decided", r.decided(1))
		for i, size := range []int64{19_990, 20_000, 20_001} {
			rec := sized(uint64(i+1), size)
			it := newItem(rec, event.Ticket{})
			if got := batchSize(&it.rec); got != size {
				t.Fatalf("the record has %d bytes, want %d", got, size)
			}
			it.free()
			r.publish(rec, uint64(i+1))
		}
		r.wait("decided", r.decided(4))
		if got := r.consume("a"); len(got) != 3 {
			t.Errorf("%d arrived, want the 3 that fit", len(got))
		}
		if !slices.Equal(r.refused, []string{"too_large"}) || r.retried != 0 {
			t.Errorf("refused %v, sent again %d; want one refused before sending", r.refused, r.retried)
		}
		letter := r.consume("dlq")[0]
		headers := map[string]string{}
		for _, h := range letter.Headers {
			headers[h.Key] = string(h.Value)
		}
		for key, want := range map[string]string{
			"walrelay_dlq_size": "20001", "walrelay_dlq_limit": "20000", "walrelay_dlq_topic": "a", "walrelay_dlq_source": "orders",
			"walrelay_dlq_position": "0/4/0", "id": "3",
		} {
			if headers[key] != want {
				t.Errorf("header %s is %q, want %q", key, headers[key], want)
			}
		}
		if !strings.Contains(headers["walrelay_dlq_reason"], "20001 bytes, the limit is 20000") {
			t.Errorf("reason: %s", headers["walrelay_dlq_reason"])
		}
		if refusals.Hits() == 0 {
			t.Error("the observer saw no produce request")
		}
		r.close(4)
	})
}

func TestValueThatFitsNoDeadLetterIsLeftOutAndSaid(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		limit := "2000"
		for _, topic := range []string{"a", "dlq"} {
			if err := r.cluster.CreateTopic(topic, 1, map[string]string{"max.message.bytes": limit}); err != nil {
				t.Fatal(err)
			}
		}
		r.opts.OnPoison, r.opts.DLQTopic = PoisonDLQ, "dlq"
		r.open()
		rec := record("a", "k", 0)
		rec.Value = make([]byte, 5000)
		r.publish(rec, 0)
		r.wait("decided", r.decided(1))
		letter := r.consume("dlq")[0]
		if letter.Value != nil || string(letter.Headers[len(letter.Headers)-1].Value) != "5000" {
			t.Errorf("letter: %d bytes, headers %v", len(letter.Value), letter.Headers)
		}
		r.close(1)
	})
}

// Records above the batch size and below the topic's limit go alone, in order.
func TestRecordLargerThanABatchKeepsItsPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		limit := "10000000"
		if err := r.cluster.CreateTopic("a", 2, map[string]string{"max.message.bytes": limit}); err != nil {
			t.Fatal(err)
		}
		r.opts.BatchMaxBytes = 10_000
		r.open()
		const n = 300
		for i := range uint64(n) {
			rec := record("a", fmt.Sprintf("k%d", i%4), i)
			if i%50 == 20 {
				rec.Value = make([]byte, 2_000_000)
			}
			r.publish(rec, i)
		}
		r.wait("decided", r.decided(n))
		got := r.consume("a")
		if len(got) != n {
			t.Errorf("%d arrived, want %d", len(got), n)
		}
		inOrder(t, got)
		r.close(n)
	})
}

func TestRefuseKeepsItsPlaceAndIllegalTopicIsNoTopic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, kfake.SeedTopics(1, "a", "dlq"))
		r.opts.OnPoison, r.opts.DLQTopic = PoisonDLQ, "dlq"
		r.open()
		const n = 200
		for i := range uint64(n) {
			rec := record("a", "k", i)
			var err error
			switch i {
			case 50:
				err = r.pub.Refuse(context.Background(), rec, event.Ticket{Entry: i}, errors.New("null payload"))
			case 60:
				rec.Topic = ""
				err = r.pub.Refuse(context.Background(), rec, event.Ticket{Entry: i}, errors.New("no route"))
			case 70:
				rec.Topic = "not a topic"
				err = r.pub.Publish(context.Background(), rec, event.Ticket{Entry: i})
			default:
				err = r.pub.Publish(context.Background(), rec, event.Ticket{Entry: i})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		r.wait("decided", r.decided(n))
		if got := r.consume("a"); len(got) != n-3 {
			t.Errorf("%d arrived, want %d", len(got), n-3)
		}
		if got := r.consume("dlq"); len(got) != 3 {
			t.Errorf("%d dead letters, want 3", len(got))
		}
		if len(r.conditions) != 0 {
			t.Errorf("conditions: %v", r.conditions)
		}
		r.close(n)
	})
}

// C44: a timestamp that the topic refuses is replaced before sending, or when the broker says so.
func TestTimestampOutsideTheWindowFallsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		hour, day := "3600000", "86400000"
		window := map[string]string{"message.timestamp.after.max.ms": hour, "message.timestamp.before.max.ms": day}
		if err := r.cluster.CreateTopic("a", 1, window); err != nil {
			t.Fatal(err)
		}
		r.open()
		now := time.Now()
		commit := now.Add(-time.Minute)
		for i, at := range []time.Time{
			now.Add(24 * time.Hour), now.Add(-30 * 24 * time.Hour), time.Unix(0, 0), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), now,
		} {
			rec := record("a", "k", uint64(i))
			rec.Millis, rec.FallbackMillis = at.UnixMilli(), commit.UnixMilli()
			r.publish(rec, uint64(i))
		}
		r.wait("decided", r.decided(5))
		got := r.consume("a")
		for i, rec := range got {
			want := commit
			if i == 4 {
				want = now
			}
			if rec.Timestamp.UnixMilli() != want.UnixMilli() {
				t.Errorf("record %d has %s, want %s", i, rec.Timestamp, want)
			}
		}
		r.refuseRecord("a", mark, kerr.InvalidTimestamp).Remove()
		r.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.InvalidTimestamp})
		rec := record("a", "k", 5)
		rec.FallbackMillis = commit.UnixMilli()
		r.publish(rec, 5)
		r.wait("decided", r.decided(6))
		if last := r.consume("a")[5]; last.Timestamp.UnixMilli() != commit.UnixMilli() {
			t.Errorf("refused timestamp became %s, want %s", last.Timestamp, commit)
		}
		r.close(6)
	})
}
