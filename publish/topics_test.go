package publish

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// C32: a missing topic does not hold up others, is named, and is caught up with in order.
func TestMissingTopicWaitsInOrderWhileOthersFlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, kfake.SeedTopics(3, "known"))
		r.open()
		const n = 400
		for i := range uint64(n) {
			r.publish(record([]string{"known", "missing"}[i%2], fmt.Sprintf("k%d", i%7), i), i)
		}
		r.wait("the known half decided", r.decided(n/2))
		pass(2 * time.Minute)
		r.mu.Lock()
		if c := r.conditions["topic/missing"]; !strings.Contains(c.What, "missing") || c.Anchor != AnchorTopicMissing {
			t.Errorf("the condition is %+v", c)
		}
		if len(r.results) != n/2 {
			t.Errorf("%d decided without the topic, want %d", len(r.results), n/2)
		}
		r.mu.Unlock()
		if err := r.cluster.CreateTopic("missing", 3, nil); err != nil {
			t.Fatal(err)
		}
		created := time.Now()
		r.wait("all decided", r.decided(n))
		if d := time.Since(created); d > 5*time.Second {
			t.Errorf("took %s after the topic appeared", d)
		}
		if got := r.consume("missing"); len(got) != n/2 {
			t.Errorf("%d arrived, want %d", len(got), n/2)
		} else {
			inOrder(t, got)
		}
		if len(r.conditions) != 0 {
			t.Errorf("conditions that stay: %v", r.conditions)
		}
		r.close(n)
	})
}

func TestMissingTopicIsCreatedWhenAskedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, kfake.DefaultNumPartitions(4))
		r.opts.CreateTopics = true
		r.open()
		r.publish(record("new", "k", 0), 0)
		r.wait("decided", r.decided(1))
		if got := len(r.cluster.PartitionInfos("new")); got != 4 {
			t.Errorf("the topic has %d partitions, want 4", got)
		}
		r.close(1)
	})
}

// C34: the switch to more partitions waits for what is under way.
func TestMorePartitionsWaitForWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, kfake.SeedTopics(3, "a"))
		r.opts.RefreshEvery = 5 * time.Second
		r.open()
		const n = 2000
		for i := range uint64(n / 2) {
			r.publish(record("a", fmt.Sprintf("k%d", i%50), i), i)
		}
		r.wait("the first half decided", r.decided(n/2))
		r.grow("a", 6)
		// The broker does not answer while the switch is due: it must not happen.
		release := make(chan struct{})
		r.cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
			r.cluster.SleepControl(func() { <-release })
			return nil, nil, false
		})
		r.publish(record("a", "k0", n/2), n/2)
		pass(8 * time.Second) // less than the client's patience
		r.mu.Lock()
		if len(r.cuts) != 0 {
			t.Errorf("switched with a record under way: %v", r.cuts)
		}
		r.mu.Unlock()
		close(release)
		for i := uint64(n/2 + 1); i < n; i++ {
			r.publish(record("a", fmt.Sprintf("k%d", i%50), i), i)
		}
		r.wait("all decided", r.decided(n))
		if len(r.cuts) != 1 || r.cuts[0] != [2]int{3, 6} {
			t.Errorf("cuts are %v, want [[3 6]]", r.cuts)
		}
		got := r.consume("a")
		if len(got) != n {
			t.Errorf("%d arrived, want %d", len(got), n)
		}
		wide := false
		for _, rec := range got {
			wide = wide || rec.Partition > 2
		}
		if !wide {
			t.Error("no record reached a new partition")
		}
		r.close(n)
	})
}

func TestPinnedTopicStaysAtItsCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, kfake.SeedTopics(6, "a"))
		r.opts.PinPartitions = map[string]int{"a": 2}
		r.open()
		for i := range uint64(50) {
			r.publish(record("a", fmt.Sprintf("k%d", i), i), i)
		}
		r.wait("decided", r.decided(50))
		for _, rec := range r.consume("a") {
			if rec.Partition > 1 {
				t.Errorf("a record lies in partition %d", rec.Partition)
			}
		}
		r.close(50)
	})
}

// A topic that is deleted and made again is taken up without a restart.
func TestRecreatedTopicIsTakenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, kfake.SeedTopics(1, "a"))
		r.opts.RefreshEvery = 5 * time.Second
		r.open()
		r.publish(record("a", "k", 0), 0)
		r.wait("decided", r.decided(1))
		if err := r.cluster.DeleteTopic("a"); err != nil {
			t.Fatal(err)
		}
		if err := r.cluster.CreateTopic("a", 1, nil); err != nil {
			t.Fatal(err)
		}
		for i := uint64(1); i < 100; i++ {
			r.publish(record("a", "k", i), i)
		}
		r.wait("decided", r.decided(100))
		got := r.consume("a")
		if len(got) != 99 {
			t.Errorf("%d arrived in the new topic, want 99", len(got))
		}
		inOrder(t, got)
		r.close(100)
	})
}

// It may even have fewer partitions than before: what was meant for those that are gone is cut anew.
func TestRecreatedTopicMayHaveFewerPartitions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, kfake.SeedTopics(6, "a"))
		r.opts.RefreshEvery = 5 * time.Second
		r.open()
		for i := range uint64(50) {
			r.publish(record("a", fmt.Sprintf("k%d", i%10), i), i)
		}
		r.wait("decided", r.decided(50))
		if err := r.cluster.DeleteTopic("a"); err != nil {
			t.Fatal(err)
		}
		if err := r.cluster.CreateTopic("a", 2, nil); err != nil {
			t.Fatal(err)
		}
		for i := uint64(50); i < 200; i++ {
			r.publish(record("a", fmt.Sprintf("k%d", i%10), i), i)
			pass(100 * time.Millisecond)
		}
		r.wait("decided", r.decided(200))
		got := r.consume("a")
		if len(got) != 150 {
			t.Errorf("%d arrived in the new topic, want 150", len(got))
		}
		inOrder(t, got)
		pass(time.Minute)
		if len(r.conditions) != 0 {
			t.Errorf("conditions that stay: %v", r.conditions)
		}
		r.close(200)
	})
}

func TestWeakReplicationIsWarnedOfOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, kfake.SeedTopics(1, "a"))
		r.opts.RefreshEvery = time.Second
		r.open()
		r.publish(record("a", "k", 0), 0)
		pass(10 * time.Second)
		if len(r.warnings) != 1 {
			t.Errorf("warnings are %q, want one", r.warnings)
		}
		r.close(1)
	})
}

func TestUnreadableConfigurationIsNoObstacle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, kfake.SeedTopics(1, "a"))
		r.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.DescribeConfigs}, Err: kerr.TopicAuthorizationFailed, Count: -1})
		r.open()
		r.publish(record("a", "k", 0), 0)
		r.wait("decided", r.decided(1))
		r.mu.Lock()
		if !strings.Contains(strings.Join(r.warnings, "\n"), "grant DescribeConfigs") {
			t.Errorf("warnings are %q", r.warnings)
		}
		r.mu.Unlock()
		r.close(1)
	})
}

// grow adds partitions to a topic.
func (r *rig) grow(topic string, to int) {
	r.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers("localhost:9092"), kgo.Dialer(r.network.DialContext), kgo.DisableClientMetrics())
	if err != nil {
		r.t.Fatal(err)
	}
	defer cl.Close()
	resp, err := kadm.NewClient(cl).UpdatePartitions(r.t.Context(), to, topic)
	if err == nil {
		err = resp.Error()
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func TestNamedTopicsAreLookedAtBeforeTheFirstRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, kfake.SeedTopics(3, "a"))
		r.opts.Topics = []string{"a", "missing"}
		r.open()
		time.Sleep(10 * time.Second) // of the bubble
		synctest.Wait()
		if c := r.condition("topic/missing"); c.What == "" || !strings.Contains(c.What, "missing") {
			t.Errorf("condition %+v, want the missing topic's name", c)
		}
		if c := r.condition("topic/a"); c.What != "" {
			t.Errorf("condition %+v of a topic that is there", c)
		}
		r.close(0)
	})
}

func TestForbiddenProducerShowsBeforeTheFirstRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, kfake.SeedTopics(3, "a"))
		r.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, Err: kerr.ClusterAuthorizationFailed, Count: -1})
		r.open()
		time.Sleep(10 * time.Second) // of the bubble
		synctest.Wait()
		if c := r.condition("kafka/producer"); c.What == "" {
			t.Error("no condition although the producer is forbidden")
		}
		r.close(0)
	})
}
