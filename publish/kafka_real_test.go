package publish

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/test/kafkaserver"
)

// real is a publisher before a real Kafka that asks for TLS, SCRAM and ACLs.
type real struct {
	t      *testing.T
	server *kafkaserver.Server
	opts   Options

	mu         sync.Mutex
	results    map[uint64][]error
	conditions map[string]event.Condition
	retried    int
	changed    chan struct{}
}

func newReal(t *testing.T, s *kafkaserver.Server, user string) *real {
	r := &real{t: t, server: s, results: map[uint64][]error{}, conditions: map[string]event.Condition{}, changed: make(chan struct{}, 1)}
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, s.CA(), 0o600); err != nil {
		t.Fatal(err)
	}
	r.opts = Options{
		Brokers: s.Brokers(), Linger: DefaultLinger, MissingEvery: time.Second, RefreshEvery: 2 * time.Second,
		TLS:  TLS{Enable: true, CAFile: ca},
		SASL: SASL{Mechanism: "SCRAM-SHA-256", User: user, Password: user + "-secret"},
		Result: func(t event.Ticket, err error) {
			r.mu.Lock()
			r.results[t.Entry] = append(r.results[t.Entry], err)
			r.mu.Unlock()
			wake(r.changed)
		},
	}
	return r
}

func (r *real) open() *Publisher {
	r.t.Helper()
	pub, err := Open(r.t.Context(), r.opts, Observer{
		Condition: func(key string, c event.Condition) {
			r.mu.Lock()
			r.conditions[key] = c
			r.mu.Unlock()
			wake(r.changed)
		},
		Retried: func(_ string, n int) { r.mu.Lock(); r.retried += n; r.mu.Unlock() },
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = pub.Close(context.Background()) })
	return pub
}

func (r *real) await(what string, within time.Duration, done func() bool) {
	r.t.Helper()
	deadline := time.After(within)
	for {
		r.mu.Lock()
		ok := done()
		r.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-r.changed:
		case <-deadline:
			r.mu.Lock()
			defer r.mu.Unlock()
			r.t.Fatalf("in %s: not %s; %d results, conditions %v", within, what, len(r.results), r.conditions)
		}
	}
}

func (r *real) allow(user, topic string, ops ...kadm.ACLOperation) {
	r.t.Helper()
	acl := kadm.NewACLs().Topics(topic).ResourcePatternType(kadm.ACLPatternLiteral).Operations(ops...).Allow("User:" + user).AllowHosts()
	if _, err := r.server.Admin(r.t).CreateACLs(r.t.Context(), acl); err != nil {
		r.t.Fatal(err)
	}
}

func (r *real) publish(pub *Publisher, rec *event.Record, n uint64) {
	r.t.Helper()
	if err := pub.Publish(r.t.Context(), rec, event.Ticket{Entry: n}); err != nil {
		r.t.Fatal(err)
	}
}

func (r *real) oneResultEach(n int) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range uint64(n) {
		if len(r.results[i]) != 1 {
			r.t.Errorf("ticket %d has %d results", i, len(r.results[i]))
		}
	}
}

func TestOnRealKafka(t *testing.T) {
	t.Parallel()
	users := map[string]string{}
	for _, u := range []string{"alice", "bob", "carol", "dave"} {
		users[u] = u + "-secret"
	}
	s := kafkaserver.Start(t, kafkaserver.Options{TLS: true, Authorizer: true, Users: users})
	t.Run("ForbiddenTopicsFlowOnceGranted", func(t *testing.T) { realForbidden(t, s) })
	t.Run("RefusedBatchGivesUpItsCulpritOnly", func(t *testing.T) { realTooLarge(t, s) })
	t.Run("RefusedTimestampFallsBack", func(t *testing.T) { realTimestamp(t, s) })
	t.Run("WrongPasswordHalts", func(t *testing.T) { realPassword(t, s) })
	t.Run("MorePartitionsWhileRunning", func(t *testing.T) { realGrow(t, s) })
	t.Run("CloseEndsWhileTheBrokerIsFrozen", func(t *testing.T) { realFrozen(t, s) }) // last: it freezes the server
}

// C33: first nothing is granted, not even a producer id; then one topic; then the other.
func realForbidden(t *testing.T, s *kafkaserver.Server) {
	r := newReal(t, s, "bob")
	orders, audit := s.Topic(t, 2, nil), s.Topic(t, 2, nil)
	pub := r.open()
	const n = 200
	for i := range uint64(n) {
		r.publish(pub, record([]string{orders, audit}[i%2], fmt.Sprintf("k%d", i%5), i), i)
	}
	r.await("a word about the producer id", 30*time.Second, func() bool {
		return strings.Contains(r.conditions["kafka/producer"].What, "User:bob")
	})
	r.allow("bob", orders, kadm.OpWrite, kadm.OpDescribe)
	r.await("orders decided", time.Minute, func() bool { return len(r.results) == n/2 })
	r.await("a word about audit", 30*time.Second, func() bool {
		c := r.conditions["topic/"+audit]
		return strings.Contains(c.What, "User:bob may not write") && strings.Contains(c.Remedy, audit)
	})
	granted := time.Now()
	r.allow("bob", audit, kadm.OpWrite, kadm.OpDescribe)
	r.await("all decided", time.Minute, func() bool { return len(r.results) == n })
	t.Logf("%s after the grant", time.Since(granted).Round(time.Millisecond))
	for _, topic := range []string{orders, audit} {
		got := s.Consume(t, topic)
		if len(got) != n/2 {
			t.Errorf("%d arrived in %s, want %d", len(got), topic, n/2)
		}
		inOrder(t, got)
	}
	r.oneResultEach(n)
}

// C31: the limit is lowered behind our back, so that the broker refuses whole batches.
func realTooLarge(t *testing.T, s *kafkaserver.Server) {
	r := newReal(t, s, "alice")
	topic, dlq := s.Topic(t, 1, map[string]string{"max.message.bytes": "100000"}), s.Topic(t, 1, nil)
	r.allow("alice", topic, kadm.OpWrite, kadm.OpDescribe, kadm.OpDescribeConfigs)
	r.allow("alice", dlq, kadm.OpWrite, kadm.OpDescribe, kadm.OpDescribeConfigs)
	r.opts.OnPoison, r.opts.DLQTopic, r.opts.RefreshEvery = PoisonDLQ, dlq, time.Hour
	pub := r.open()
	r.publish(pub, record(topic, "k0", 0), 0)
	r.await("the topic known", time.Minute, func() bool { return len(r.results) == 1 })
	value := "20000"
	if _, err := s.Admin(t).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{
		{Op: kadm.SetConfig, Name: "max.message.bytes", Value: &value},
	}, topic); err != nil {
		t.Fatal(err)
	}
	const n = 401
	for i := uint64(1); i < n; i++ {
		rec := record(topic, fmt.Sprintf("k%d", i%5), i)
		switch i {
		case 150:
			rec.Value = make([]byte, 50_000) // fits what we know, not what holds
		case 250:
			rec.Value = make([]byte, 300_000) // refused before sending
		default:
			rec.Value = make([]byte, 400)
		}
		r.publish(pub, rec, i)
	}
	r.await("all decided", time.Minute, func() bool { return len(r.results) == n })
	got := s.Consume(t, topic)
	if len(got) != n-2 {
		t.Errorf("%d arrived, want %d", len(got), n-2)
	}
	inOrder(t, got)
	if letters := s.Consume(t, dlq); len(letters) != 2 {
		t.Errorf("%d dead letters, want 2", len(letters))
	}
	if r.retried == 0 {
		t.Error("the broker refused no batch: the test shows nothing")
	}
	r.oneResultEach(n)
}

// C44, with a configuration that may not be read: the broker says so, and only then we know.
func realTimestamp(t *testing.T, s *kafkaserver.Server) {
	r := newReal(t, s, "carol")
	topic := s.Topic(t, 1, map[string]string{"message.timestamp.before.max.ms": "86400000", "message.timestamp.after.max.ms": "3600000"})
	r.allow("carol", topic, kadm.OpWrite, kadm.OpDescribe)
	pub := r.open()
	for i := range uint64(20) {
		rec := record(topic, "k", i)
		if i == 7 {
			rec.Millis = time.Now().Add(-30 * 24 * time.Hour).UnixMilli()
		}
		r.publish(pub, rec, i)
	}
	r.await("all decided", time.Minute, func() bool { return len(r.results) == 20 })
	got := s.Consume(t, topic)
	inOrder(t, got)
	if len(got) != 20 || time.Since(got[7].Timestamp) > time.Hour {
		t.Errorf("%d arrived, want 20 with new timestamps", len(got))
	}
	r.oneResultEach(20)
}

func realPassword(t *testing.T, s *kafkaserver.Server) {
	r := newReal(t, s, "alice")
	r.opts.SASL.Password = "wrong"
	_, err := Open(t.Context(), r.opts, Observer{})
	var e *event.Error
	if !errors.As(err, &e) || e.Class != event.Halt || e.Anchor != AnchorAuthentication || !strings.Contains(e.What, "User:alice") {
		t.Errorf("Open: %v", err)
	}
	for _, f := range Check(t.Context(), r.opts, nil) {
		if f.Setting == "kafka brokers" && (f.OK || !strings.Contains(f.Is, "User:alice")) {
			t.Errorf("Check: %+v", f)
		}
	}
}

// C34.
func realGrow(t *testing.T, s *kafkaserver.Server) {
	r := newReal(t, s, "dave")
	topic := s.Topic(t, 3, nil)
	r.allow("dave", topic, kadm.OpWrite, kadm.OpDescribe, kadm.OpDescribeConfigs)
	pub := r.open()
	n, grown := uint64(0), false
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		for range 500 {
			r.publish(pub, record(topic, fmt.Sprintf("k%d", n%50), n), n)
			n++
		}
		r.await("a batch decided", time.Minute, func() bool { return uint64(len(r.results)) >= n-400 })
		if !grown {
			if _, err := s.Admin(t).UpdatePartitions(t.Context(), 6, topic); err != nil {
				t.Fatal(err)
			}
			grown = true
		}
		if t := (*pub.topics.Load())[topic]; t.shape.Load() != nil && len(t.shape.Load().lanes) == 6 {
			break
		}
	}
	for range 500 {
		r.publish(pub, record(topic, fmt.Sprintf("k%d", n%50), n), n)
		n++
	}
	r.await("all decided", time.Minute, func() bool { return uint64(len(r.results)) == n })
	got := s.Consume(t, topic)
	if uint64(len(got)) != n {
		t.Errorf("%d arrived, want %d", len(got), n)
	}
	// Of each key, what lies in the old partition is older than what lies in the new one.
	newest, oldest := map[string]time.Time{}, map[string]time.Time{}
	wide := false
	for _, rec := range got {
		key := string(rec.Key)
		if rec.Partition < 3 && rec.Timestamp.After(newest[key]) {
			newest[key] = rec.Timestamp
		}
		if rec.Partition >= 3 && (oldest[key].IsZero() || rec.Timestamp.Before(oldest[key])) {
			oldest[key], wide = rec.Timestamp, true
		}
	}
	for key, first := range oldest {
		if newest[key].After(first) {
			t.Errorf("key %s: the old partition has a later record than the first of the new one", key)
		}
	}
	if !wide {
		t.Error("no record reached a new partition")
	}
	r.oneResultEach(int(n))
}

// C38.
func realFrozen(t *testing.T, s *kafkaserver.Server) {
	r := newReal(t, s, "alice")
	topic := s.Topic(t, 3, nil)
	r.allow("alice", topic, kadm.OpWrite, kadm.OpDescribe)
	pub := r.open()
	r.publish(pub, record(topic, "k", 0), 0)
	r.await("the topic known", time.Minute, func() bool { return len(r.results) == 1 })
	s.Pause(t)
	for i := uint64(1); i <= 100; i++ {
		r.publish(pub, record(topic, fmt.Sprintf("k%d", i), i), i)
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	err := pub.Close(ctx)
	if d := time.Since(began); d > 5*time.Second || !errors.Is(err, ErrClosed) {
		t.Errorf("Close took %s: %v", d, err)
	}
	s.Continue(t)
	r.oneResultEach(101)
	if got := s.Consume(t, topic); len(got) > 101 {
		t.Errorf("%d records, want at most 101", len(got))
	}
}
