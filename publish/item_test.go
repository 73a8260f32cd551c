package publish

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/walrelay/walrelay/event"
)

// franz-go has failed a record, but its promise has not run yet: whoever delivers
// promises is kept busy. A later record of the partition must not go out meanwhile.
func TestRecordNeverPassesAFailureThatIsNotYetKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, kfake.SeedTopics(1, "a", "b"))
		r.opts.Linger = 0
		count, busy := r.opts.Result, false
		r.opts.Result = func(t event.Ticket, err error) {
			if t.Entry == 2 {
				busy = true
				time.Sleep(guardPatience / 2)
			}
			count(t, err)
		}
		r.open()
		r.publish(record("a", "k", 0), 0)
		r.publish(record("b", "k", 1), 1)
		r.wait("both topics known", r.decided(2))
		r.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "a", Err: kerr.TopicAuthorizationFailed})
		r.publish(record("b", "k", 2), 2)
		synctest.Wait()
		if !busy {
			t.Fatal("promises are not held up")
		}
		r.publish(record("a", "k", 3), 3) // fails; nobody is told yet
		synctest.Wait()
		r.publish(record("a", "k", 4), 4) // must wait for 3
		r.wait("decided", r.decided(5))
		got := r.consume("a")
		if len(got) != 3 {
			t.Errorf("%d arrived, want 3", len(got))
		}
		inOrder(t, got)
		if r.retried != 2 {
			t.Errorf("%d records were sent again, want the failed one and the one behind it", r.retried)
		}
		r.close(5)
	})
}
