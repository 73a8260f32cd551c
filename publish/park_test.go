package publish

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/walrelay/walrelay/event"
)

// parking makes the rig's publisher put aside what is poison.
func (r *rig) parking() *desk {
	d := newDesk()
	r.opts.OnPoison, r.opts.Desk = PoisonPark, d
	return d
}

// A record that is refused before sending, by the broker, or by the caller is put aside, and
// with it the later ones of its key; no other key loses a record or its place.
func TestParkedRecordHoldsItsKeyAndNoOther(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"too large", "broker", "refuse", "illegal topic"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				if err := r.cluster.CreateTopic("a", 1, map[string]string{"max.message.bytes": "20000"}); err != nil {
					t.Fatal(err)
				}
				d := r.parking()
				var parked, held atomic.Int64
				r.obs.Parked = func(source, _, _ string) { parked.Add(1) }
				r.obs.Held = func(source string, n int) { held.Add(int64(n)) }
				r.open()
				r.refuseRecord("a", mark, kerr.InvalidRecord)
				const n, bad = 400, 102
				for i := range uint64(n) {
					rec, err := record("a", fmt.Sprintf("k%d", i%5), i), error(nil)
					ticket := event.Ticket{Entry: i}
					switch {
					case i != bad:
						err = r.pub.Publish(context.Background(), rec, ticket)
					case how == "too large":
						rec.Value = make([]byte, 30_000)
						err = r.pub.Publish(context.Background(), rec, ticket)
					case how == "broker":
						rec.Value = []byte(mark)
						err = r.pub.Publish(context.Background(), rec, ticket)
					case how == "refuse":
						err = r.pub.Refuse(context.Background(), rec, ticket, errors.New("null payload"))
					default: // elsewhere than its key's other records: held all the same, a moment later
						r.wait("those before it decided", r.decided(bad))
						rec.Topic = "no topic"
						err = r.pub.Publish(context.Background(), rec, ticket)
						r.wait("put aside", func() bool { return d.has(bad) })
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				r.wait("all decided", r.decided(n))
				got := r.consume("a")
				inOrder(t, got)
				var want []string
				for i := uint64(bad); i < n; i += 5 {
					if want = append(want, fmt.Sprintf("(%d)", i)); i == bad {
						want[0] = fmt.Sprint(i)
					}
				}
				if put := d.put(); put != strings.Join(want, " ") {
					t.Errorf("put aside: %s\nwant %s", put, strings.Join(want, " "))
				}
				if len(got)+len(want) != n {
					t.Errorf("%d arrived and %d were put aside, want %d in all", len(got), len(want), n)
				}
				for i := range uint64(n) {
					if err, _ := r.result(i); err != nil {
						t.Errorf("ticket %d: %v", i, err)
					}
				}
				if parked.Load() != 1 || held.Load() != int64(len(want)-1) || len(r.refused) != 1 {
					t.Errorf("counted %d parked, %d held, refused %v", parked.Load(), held.Load(), r.refused)
				}
				r.close(n)
			})
		})
	}
}

// The desk sees the record as it was given to Publish.
func TestDeskGetsTheRecordAsItWas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, kfake.SeedTopics(1, "a"))
		d := r.parking()
		var seen []*event.Record
		d.park = func(rec *event.Record, _ event.Ticket, why error) error {
			var r interface{ Reason() string }
			if !errors.As(why, &r) || r.Reason() != "refused" {
				t.Errorf("the reason is not in %v", why)
			}
			c := *rec
			c.Key, c.Value = append([]byte(nil), rec.Key...), append([]byte(nil), rec.Value...)
			seen = append(seen, &c)
			return nil
		}
		r.open()
		rec := record("no topic", "k", 7)
		rec.Millis, rec.FallbackMillis, rec.Loose = 1, 2, true
		for i := range 12 {
			rec.Headers = append(rec.Headers, event.Header{Key: fmt.Sprint("h", i)})
		}
		r.publish(rec, 0)
		r.wait("decided", r.decided(1))
		rec.Loose = false
		if err := r.pub.Refuse(context.Background(), rec, event.Ticket{Entry: 1}, errors.New("no")); err != nil {
			t.Fatal(err)
		}
		r.wait("decided", r.decided(2))
		for i, got := range seen {
			if got.Topic != "no topic" || string(got.Key) != "k" || string(got.Value) != "7" || got.Millis != 1 || got.FallbackMillis != 2 ||
				got.Hash != rec.Hash || got.Loose != (i == 0) || got.Partial != (i == 1) || len(got.Headers) != 13 ||
				got.Headers[12].Value != nil || string(got.Origin.EventID) != "7" {
				t.Errorf("record %d: %+v", i, got)
			}
		}
		// What was refused half made is not sent later, whoever asks for it.
		rec.Topic, rec.Partial = "a", true
		r.publish(rec, 2)
		r.wait("decided", r.decided(3))
		if got := r.consume("a"); len(got) != 0 || d.put() != "0 1 2" {
			t.Errorf("%d arrived, put aside %s", len(got), d.put())
		}
		r.close(3)
	})
}

// A key that was held before the publisher saw any record of it never passes, in no order of events.
func TestHeldKeyWaitsWhateverThePolicyIs(t *testing.T) {
	t.Parallel()
	for _, policy := range []PoisonPolicy{PoisonStop, PoisonDLQ, PoisonPark} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, kfake.SeedTopics(2, "a", "dlq"))
				d := r.parking()
				r.opts.OnPoison, r.opts.DLQTopic = policy, "dlq"
				d.hold("k1")
				r.open()
				const n = 200
				for i := range uint64(n) {
					rec := record("a", fmt.Sprintf("k%d", i%4), i)
					switch i {
					case 101: // loose: the route asks for no order
						rec.Loose = true
					case 105: // no key: nothing to wait behind
						rec.Key, rec.Spread = nil, true
					}
					r.publish(rec, i)
				}
				r.wait("all decided", r.decided(n))
				if got := r.consume("a"); len(got) != n-n/4+2 {
					t.Errorf("%d arrived, want %d", len(got), n-n/4+2)
				}
				if err := d.ascending(); err != nil || len(d.aside) != n/4-2 || len(r.refused) != 0 {
					t.Errorf("%d put aside, refused %v: %v", len(d.aside), r.refused, err)
				}
				r.close(n)
			})
		})
	}
}

// Records that wait for their topic, or behind a failing lane, are asked about when their time comes.
func TestKeyHeldWhileItsRecordsWaitIsHonoured(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"topic", "lane"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				var broken *kfake.FaultHandle
				if where == "lane" {
					if err := r.cluster.CreateTopic("a", 1, nil); err != nil {
						t.Fatal(err)
					}
					broken = r.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.TopicAuthorizationFailed, Count: -1})
				}
				d := r.parking()
				r.open()
				const n = 60
				for i := range uint64(n) {
					r.publish(record("a", fmt.Sprintf("k%d", i%3), i), i)
				}
				pass(30 * time.Second)
				d.hold("k2")
				if where == "lane" {
					broken.Remove()
				} else if err := r.cluster.CreateTopic("a", 1, nil); err != nil {
					t.Fatal(err)
				}
				r.wait("all decided", r.decided(n))
				got := r.consume("a")
				inOrder(t, got)
				if len(got) != n-n/3 || len(d.aside) != n/3 {
					t.Errorf("%d arrived, %d were put aside", len(got), len(d.aside))
				}
				if err := d.ascending(); err != nil {
					t.Error(err)
				}
				r.close(n)
			})
		})
	}
}

// What was under way when its key was held, and fails, is put aside before what came
// after it: the worker has sent one record when it finds the key of the next one held.
func TestRecordUnderWayIsPutAsideBeforeThoseAfterIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, kfake.SeedTopics(1, "a"))
		d := r.parking()
		r.open()
		refused := kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.TopicAuthorizationFailed}
		r.cluster.Fault(refused)
		for i := range uint64(4) {
			r.publish(record("a", "k", i), i) // all of them fail once
		}
		r.wait("refused", func() bool { return r.retried == 4 })
		asked := 0
		d.asked = func(string) { // 0 alone, to see whether it goes (1 is looked at); then 1, and 2 is looked at
			if asked++; asked == 4 {
				r.cluster.Fault(refused)
				d.hold("k")
			}
		}
		r.wait("all decided", r.decided(4))
		if d.put() != "(1) (2) (3)" {
			t.Errorf("put aside: %s", d.put())
		}
		r.close(4)
	})
}

// A key that is opened while a record is about to be put aside: the record goes out, before the later ones.
func TestKeyOpenedMeanwhileLetsItsRecordsOutInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, kfake.SeedTopics(1, "a"))
		d := r.parking()
		d.park = func(_ *event.Record, t event.Ticket, _ error) error {
			if t.Entry == 20 {
				d.open("k0")
			}
			return nil
		}
		r.open()
		d.hold("k0")
		const n = 40
		for i := range uint64(n) {
			r.publish(record("a", fmt.Sprintf("k%d", i%2), i), i)
		}
		r.wait("all decided", r.decided(n))
		got := r.consume("a")
		inOrder(t, got)
		if len(got) != n-10 || len(d.aside) != 10 || d.has(20) {
			t.Errorf("%d arrived, put aside: %s", len(got), d.put())
		}
		if len(r.everSet) != 0 {
			t.Errorf("conditions: %v", r.everSet)
		}
		r.close(n)
	})
}

// A desk that does not answer holds its partition and says so; nothing is sent past the record.
func TestParkingIsTriedUntilItSucceeds(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"success", "close", "halt"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, kfake.SeedTopics(1, "a"), kfake.SeedTopics(1, "b"))
				d := r.parking()
				fail := atomic.Pointer[event.Error]{}
				fail.Store(&event.Error{Class: event.Retry, What: "connection refused"})
				d.park = func(*event.Record, event.Ticket, error) error {
					if err := fail.Load(); err != nil {
						return err
					}
					return nil
				}
				r.open()
				if err := r.pub.Refuse(context.Background(), record("a", "k", 0), event.Ticket{}, errors.New("no")); err != nil {
					t.Fatal(err)
				}
				r.publish(record("a", "k", 1), 1)
				r.publish(record("a", "other", 2), 2)
				r.publish(record("b", "k", 3), 3)
				r.wait("the other topic decided", r.decided(1))
				pass(20 * time.Second)
				c := r.condition("parking/orders")
				if !strings.Contains(c.What, "connection refused") || c.Remedy == "" || c.Anchor != AnchorParking || len(r.results) != 1 {
					t.Errorf("condition %+v, %d results", c, len(r.results))
				}
				switch end {
				case "success":
					fail.Store(nil)
					r.wait("all decided", r.decided(4))
					if d.put() != "0 (1)" || len(r.consume("a")) != 1 || len(r.conditions) != 0 {
						t.Errorf("put aside %s, conditions %v", d.put(), r.conditions)
					}
					r.close(4)
				case "close":
					now, cancel := context.WithTimeout(context.Background(), time.Second)
					defer cancel()
					if err := r.pub.Close(now); !errors.Is(err, ErrClosed) {
						t.Errorf("Close: %v", err)
					}
					r.cluster.Close()
					for i := range uint64(3) {
						if err, _ := r.result(i); !errors.Is(err, ErrClosed) {
							t.Errorf("ticket %d: %v", i, err)
						}
					}
					r.oneResultEach(4)
				case "halt":
					fail.Store(&event.Error{Class: event.Halt, Fault: event.FaultPrecondition, What: "no table", Remedy: "run walrelay init", Anchor: "x"})
					r.wait("all decided", r.decided(4))
					err, _ := r.result(0)
					var e *event.Error
					if !errors.As(err, &e) || e.Class != event.Halt || e.Remedy != "run walrelay init" || !strings.Contains(err.Error(), "no table") {
						t.Errorf("the culprit's result: %v", err)
					}
					for i := uint64(1); i < 3; i++ {
						if err, _ := r.result(i); !errors.Is(err, ErrStopped) {
							t.Errorf("ticket %d: %v", i, err)
						}
					}
					if len(r.conditions) != 0 {
						t.Errorf("conditions that stay: %v", r.conditions)
					}
					r.close(4)
				}
			})
		})
	}
}

func TestDeadLetterIsToldToTheDeskBeforeItsResult(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, kfake.SeedTopics(1, "a", "dlq"))
		d := r.parking()
		r.opts.OnPoison, r.opts.DLQTopic = PoisonDLQ, "dlq"
		count, told := r.opts.Result, false
		r.opts.Result = func(t event.Ticket, err error) {
			if t.Entry == 1 {
				d.mu.Lock()
				told = len(d.lettered) == 1 && d.lettered[0] == 1
				d.mu.Unlock()
			}
			count(t, err)
		}
		r.open()
		for i := range uint64(3) {
			rec := record("a", "k", i)
			if i == 1 {
				rec.Topic = "no topic"
			}
			r.publish(rec, i)
		}
		r.wait("all decided", r.decided(3))
		if !told || len(r.consume("dlq")) != 1 || d.put() != "" {
			t.Errorf("told before the result: %t; put aside: %s", told, d.put())
		}
		r.close(3)
	})
}
