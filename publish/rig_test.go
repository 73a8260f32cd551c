package publish

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/relay"
)

var _ relay.Publisher = (*Publisher)(nil)

// rig is a fake cluster on an in-memory network, made to be used in a bubble.
type rig struct {
	t       testing.TB
	network *kfake.VirtualNetwork
	cluster *kfake.Cluster
	opts    Options
	obs     Observer
	pub     *Publisher

	mu         sync.Mutex
	results    map[uint64][]error
	conditions map[string]event.Condition
	everSet    map[string]event.Condition
	warnings   []string
	cuts       [][2]int
	letters    int
	refused    []string
	retried    int
}

func newRig(t testing.TB, opts ...kfake.Opt) *rig {
	r := &rig{
		t: t, network: new(kfake.VirtualNetwork), results: map[uint64][]error{},
		conditions: map[string]event.Condition{}, everSet: map[string]event.Condition{},
	}
	cluster, err := kfake.NewCluster(append([]kfake.Opt{
		kfake.NumBrokers(1), kfake.Ports(9092), kfake.ListenFn(r.network.Listen),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	r.cluster = cluster
	t.Cleanup(func() { // a bubble must be empty also after a failure
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		if r.pub != nil {
			_ = r.pub.Close(ended)
		}
		cluster.Close()
	})
	r.opts = Options{
		Brokers: []string{"localhost:9092"}, Dial: r.network.DialContext, Linger: DefaultLinger,
		Result: func(t event.Ticket, err error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.results[t.Entry] = append(r.results[t.Entry], err)
		},
	}
	r.obs = Observer{
		Condition: func(key string, c event.Condition) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if c.What == "" {
				delete(r.conditions, key)
				return
			}
			r.conditions[key], r.everSet[key] = c, c
		},
		TopicWarning: func(topic, what string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.warnings = append(r.warnings, topic+": "+what)
		},
		PartitionsChanged: func(_ string, before, after int) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.cuts = append(r.cuts, [2]int{before, after})
		},
		DeadLettered: func(string) { r.mu.Lock(); r.letters++; r.mu.Unlock() },
		Refused: func(_, _, reason string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.refused = append(r.refused, reason)
		},
		Retried: func(_ string, n int) { r.mu.Lock(); r.retried += n; r.mu.Unlock() },
	}
	return r
}

func (r *rig) open() {
	r.t.Helper()
	pub, err := Open(context.Background(), r.opts, r.obs)
	if err != nil {
		r.t.Fatal(err)
	}
	r.pub = pub
}

// condition is the one that stands under a key now.
func (r *rig) condition(key string) event.Condition {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.conditions[key]
}

// close ends the publisher and the cluster, and checks that each ticket below n had one result.
func (r *rig) close(n uint64) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := r.pub.Close(ctx); err != nil {
		r.t.Errorf("Close: %v", err)
	}
	r.cluster.Close()
	r.oneResultEach(n)
}

func (r *rig) oneResultEach(n uint64) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range n {
		if len(r.results[i]) != 1 {
			r.t.Errorf("ticket %d has %d results, want 1", i, len(r.results[i]))
		}
	}
	if len(r.results) != int(n) {
		r.t.Errorf("%d tickets have results, want %d", len(r.results), n)
	}
	if records, bytes := r.pub.InFlight(); records != 0 || bytes != 0 {
		r.t.Errorf("%d records and %d bytes are in flight after the end", records, bytes)
	}
}

// record makes record n of a key; value and header carry the number.
func record(topic, key string, n uint64) *event.Record {
	id := fmt.Appendf(nil, "%d", n)
	now := time.Now().UnixMilli()
	hash := uint32(2166136261)
	for _, c := range []byte(key) {
		hash = (hash ^ uint32(c)) * 16777619
	}
	return &event.Record{
		Topic: topic, Key: []byte(key), Value: id, Headers: []event.Header{{Key: "id", Value: id}},
		Millis: now, FallbackMillis: now, Hash: hash & 0x7fffffff,
		Origin: event.Origin{Source: "orders", Relation: "public.outbox", EventID: id, Commit: event.AtLSN(event.LSN(n + 1))},
	}
}

func (r *rig) publish(rec *event.Record, n uint64) {
	r.t.Helper()
	if err := r.pub.Publish(context.Background(), rec, event.Ticket{Entry: n}); err != nil {
		r.t.Fatalf("Publish %d: %v", n, err)
	}
}

// wait lets time pass until done answers true.
func (r *rig) wait(what string, done func() bool) {
	r.t.Helper()
	for range 10_000 {
		r.mu.Lock()
		ok := done()
		r.mu.Unlock()
		if ok {
			return
		}
		pass(10 * time.Millisecond)
	}
	r.t.Fatalf("in 100 s: not %s", what)
}

// pass lets virtual time pass.
func pass(d time.Duration) { <-time.After(d) }

func (r *rig) result(n uint64) (error, bool) {
	if len(r.results[n]) == 0 {
		return nil, false
	}
	return r.results[n][0], true
}

func (r *rig) decided(n int) func() bool { return func() bool { return len(r.results) >= n } }

// consume reads what is in a topic, in the order of each partition.
func (r *rig) consume(topic string) []*kgo.Record {
	r.t.Helper()
	want := 0
	for _, p := range r.cluster.PartitionInfos(topic) {
		want += int(p.HighWatermark - p.LogStartOffset)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers("localhost:9092"), kgo.Dialer(r.network.DialContext), kgo.ConsumeTopics(topic),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.DisableClientMetrics())
	if err != nil {
		r.t.Fatal(err)
	}
	defer cl.Close()
	var all []*kgo.Record
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for len(all) < want {
		fs := cl.PollFetches(ctx)
		if err := fs.Err0(); err != nil {
			r.t.Fatalf("consuming %s, have %d of %d: %v", topic, len(all), want, err)
		}
		all = append(all, fs.Records()...)
	}
	return all
}

// inOrder checks that no key's numbers go back or repeat, and that they all lie in one partition.
func inOrder(t testing.TB, records []*kgo.Record) {
	t.Helper()
	last, part := map[string]int{}, map[string]int32{}
	for _, rec := range records {
		key, n := string(rec.Key), 0
		if _, err := fmt.Sscan(string(rec.Headers[0].Value), &n); err != nil {
			t.Fatal(err)
		}
		if before, ok := last[key]; ok && n <= before {
			t.Errorf("key %s: record %d comes after %d", key, n, before)
		}
		if p, ok := part[key]; ok && p != rec.Partition {
			t.Errorf("key %s lies in partitions %d and %d", key, p, rec.Partition)
		}
		last[key], part[key] = n, rec.Partition
	}
}
