package publish

import (
	"fmt"
	"slices"
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

// returns checks that tickets from..to were given back, in order, with a reason to try again.
func (r *rig) returns(d *desk, want []uint64) {
	r.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Equal(d.returned, want) {
		r.t.Errorf("returned %v, want %v", d.returned, want)
	}
	for _, n := range want {
		if err, _ := r.result(n); event.ClassOf(err) != event.Retry || !strings.Contains(err.Error(), "does not exist") {
			r.t.Errorf("ticket %d: %v", n, err)
		}
	}
}

func numbers(from, to uint64) (all []uint64) {
	for n := from; n < to; n++ {
		all = append(all, n)
	}
	return all
}

// What waits for a topic that is missing, and what comes later, is given back in
// order; once the topic is there, held keys wait and the others arrive.
func TestRecordsOfAMissingTopicAreGivenBackInOrder(t *testing.T) {
	t.Parallel()
	for _, creation := range []string{"not asked for", "refused"} {
		t.Run(creation, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				d := r.parking()
				d.takes = true
				if creation == "refused" {
					r.opts.CreateTopics = true
					r.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.CreateTopics}, Err: kerr.PolicyViolation, Count: -1})
				}
				r.open()
				for i := range uint64(30) {
					r.publish(record("missing", fmt.Sprintf("k%d", i%3), i), i)
				}
				r.wait("given back", r.decided(30))
				for i := uint64(30); i < 60; i++ { // answered at once now
					r.publish(record("missing", fmt.Sprintf("k%d", i%3), i), i)
				}
				r.returns(d, numbers(0, 60))
				if err := r.cluster.CreateTopic("missing", 2, nil); err != nil {
					t.Fatal(err)
				}
				pass(10 * time.Second)
				d.open("k0")
				for i := uint64(60); i < 90; i++ {
					r.publish(record("missing", fmt.Sprintf("k%d", i%3), i), i)
				}
				r.wait("all decided", r.decided(90))
				if got := r.consume("missing"); len(got) != 10 || len(d.aside) != 20 {
					t.Errorf("%d arrived, %d were put aside", len(got), len(d.aside))
				}
				r.close(90)
			})
		})
	}
}

// A source that takes nothing back waits, as it does without a desk; another one's records do not wait with it.
func TestRecordsThatAreNotTakenBackWaitForTheirTopic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		d := r.parking()
		r.open()
		for i := range uint64(20) {
			r.publish(record("missing", "k", i), i)
		}
		pass(10 * time.Second)
		if len(r.results) != 0 {
			t.Errorf("%d results while the topic is missing", len(r.results))
		}
		d.mu.Lock()
		d.takes = true
		d.mu.Unlock()
		r.publish(record("missing", "other", 20), 20)
		r.wait("given back when it is looked for again", r.decided(21))
		r.returns(d, append([]uint64{20}, numbers(0, 20)...))
		r.close(21)
	})
}

// A broker that cannot be reached says nothing about a topic: no attempt is burnt.
func TestNothingIsGivenBackWhileTheBrokerIsAway(t *testing.T) {
	t.Parallel()
	for _, err := range []*kerr.Error{kerr.TopicAuthorizationFailed, kerr.LeaderNotAvailable, nil} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			d := r.parking()
			d.takes = true
			hits := func() int { return 1 }
			var over func()
			if err != nil {
				fault := r.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Err: err, Topic: "missing", Count: -1})
				hits, over = fault.Hits, fault.Remove
			} else {
				var answers atomic.Bool
				r.cluster.ControlKey(int16(kmsg.Metadata), func(kmsg.Request) (kmsg.Response, error, bool) {
					r.cluster.KeepControl()
					return nil, nil, !answers.Load()
				})
				over = func() { answers.Store(true) }
			}
			r.open()
			r.publish(record("missing", "k", 0), 0)
			pass(time.Minute)
			r.mu.Lock()
			if len(r.results) != 0 || hits() == 0 {
				t.Errorf("%v: %d results, asked %d times", err, len(r.results), hits())
			}
			r.mu.Unlock()
			over()
			r.wait("given back", r.decided(1))
			r.returns(d, numbers(0, 1))
			r.close(1)
		})
	}
}

// A topic that was known and is deleted: what its lanes hold is given back as well.
func TestRecordsOfADeletedTopicAreGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, kfake.SeedTopics(2, "a"))
		d := r.parking()
		r.open()
		r.publish(record("a", "k", 0), 0)
		r.wait("decided", r.decided(1))
		d.takes = true
		if err := r.cluster.DeleteTopic("a"); err != nil {
			t.Fatal(err)
		}
		for i := uint64(1); i < 40; i++ {
			r.publish(record("a", "k", i), i)
			pass(50 * time.Millisecond)
		}
		last := time.Now()
		r.wait("given back", r.decided(40))
		r.returns(d, numbers(1, 40))
		if took := time.Since(last); took > time.Minute { // franz-go's patience
			t.Errorf("took %s", took)
		}
		pass(time.Minute)
		r.close(40)
	})
}
