package kafkaserver

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

func TestMain(m *testing.M) { Main(m) }

func TestPomListsExactlyThePinnedJars(t *testing.T) {
	t.Parallel()
	var project struct {
		Dependencies []struct {
			Group    string `xml:"groupId"`
			Artifact string `xml:"artifactId"`
			Version  string `xml:"version"`
		} `xml:"dependencies>dependency"`
	}
	if err := xml.Unmarshal(pom, &project); err != nil {
		t.Fatal(err)
	}
	var inPom, pinned []string
	for _, d := range project.Dependencies {
		inPom = append(inPom, d.Group+" "+d.Artifact+" "+d.Version)
	}
	for _, j := range jars() {
		pinned = append(pinned, j.group+" "+j.artifact+" "+j.version)
	}
	slices.Sort(inPom)
	slices.Sort(pinned)
	if !slices.Equal(inPom, pinned) {
		t.Errorf("pom.xml has %q,\nkafka-jars.txt has %q", inPom, pinned)
	}
}

func TestConsumeReturnsEachPartitionInOrder(t *testing.T) {
	t.Parallel()
	s := Shared(t)
	topic := s.Topic(t, 3, map[string]string{"max.message.bytes": "2000000"})
	cl := s.Client(t)
	const n = 3000
	for i := range n {
		cl.Produce(t.Context(), &kgo.Record{Topic: topic, Key: fmt.Appendf(nil, "key %d", i%50), Value: fmt.Append(nil, i)}, nil)
	}
	if err := cl.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := s.ConsumeN(t, n, 30*time.Second, topic)
	if len(got) != n {
		t.Fatalf("%d records, want %d", len(got), n)
	}
	for i := 1; i < n; i++ {
		if a, b := got[i-1], got[i]; a.Partition > b.Partition || a.Partition == b.Partition && a.Offset >= b.Offset {
			t.Fatalf("record %d: partition %d offset %d before partition %d offset %d", i, a.Partition, a.Offset, b.Partition, b.Offset)
		}
	}
	if got := s.Consume(t, s.Topic(t, 2, nil)); len(got) != 0 {
		t.Errorf("an empty topic has %d records", len(got))
	}
}

func TestConsumeCommittedHidesAbortedAndOpenTransactions(t *testing.T) {
	t.Parallel()
	s := Shared(t)
	topic := s.Topic(t, 1, nil)
	write := func(cl *kgo.Client, value string) {
		t.Helper()
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte(value)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	producer := func(id string) *kgo.Client { return s.Client(t, kgo.TransactionalID(topic+id)) }
	a, b := producer("a"), producer("b")
	for _, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryCommit} {
		if err := a.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		write(a, fmt.Sprintf("a %v", end))
		if err := a.EndTransaction(t.Context(), end); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	write(b, "open")
	write(s.Client(t), "plain")

	values := func(rs []*kgo.Record) (v []string) {
		for _, r := range rs {
			v = append(v, string(r.Value))
		}
		return v
	}
	if got, want := values(s.ConsumeCommitted(t, topic)), []string{"a true", "a true", "plain"}; !slices.Equal(got, want) {
		t.Errorf("committed: %q, want %q", got, want)
	}
	if got, want := values(s.Consume(t, topic)), []string{"a true", "a false", "a true", "open", "plain"}; !slices.Equal(got, want) {
		t.Errorf("all: %q, want %q", got, want)
	}
	if err := b.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
}

func TestRecordsSurvivePauseKillAndStop(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{})
	topic := s.Topic(t, 1, nil)
	cl := s.Client(t, kgo.ProducerBatchCompression(kgo.Lz4Compression()))
	write := func(ctx context.Context, value string) error {
		return cl.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte(value)}).FirstErr()
	}
	if err := write(t.Context(), "before"); err != nil {
		t.Fatal(err)
	}

	s.Pause(t)
	written := make(chan error, 1)
	go func() { written <- write(t.Context(), "while frozen") }()
	select {
	case err := <-written:
		t.Fatalf("a frozen broker answered: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	s.Continue(t)
	if err := <-written; err != nil {
		t.Fatal(err)
	}

	s.Kill(t)
	s.StartAgain(t)
	if err := write(t.Context(), "after kill"); err != nil {
		t.Fatal(err)
	}
	s.Stop(t)
	s.StartAgain(t)
	if err := write(t.Context(), "after stop"); err != nil {
		t.Fatal(err)
	}
	if got := s.Consume(t, topic); len(got) != 4 {
		t.Errorf("%d records, want 4", len(got))
	}
}

func TestClientsLogInOverTLSAndNeedACLs(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{TLS: true, Authorizer: true, Users: map[string]string{"alice": "wonder land", "bob": "builder"}})
	topic := s.Topic(t, 1, nil)
	acl := kadm.NewACLs().Topics(topic).ResourcePatternType(kadm.ACLPatternLiteral).
		Operations(kadm.OpWrite, kadm.OpDescribe).Allow("User:alice").AllowHosts()
	if _, err := s.Admin(t).CreateACLs(t.Context(), acl); err != nil {
		t.Fatal(err)
	}
	produce := func(m sasl.Mechanism) error {
		cl, err := kgo.NewClient(kgo.SeedBrokers(s.Brokers()...), kgo.DialTLSConfig(s.TLSConfig()), kgo.SASL(m),
			kgo.DisableIdempotentWrite(), kgo.RecordRetries(2), kgo.UnknownTopicRetries(2))
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		return cl.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("x")}).FirstErr()
	}
	for name, m := range map[string]sasl.Mechanism{
		"PLAIN":         plain.Auth{User: "alice", Pass: "wonder land"}.AsMechanism(),
		"SCRAM-SHA-256": scram.Auth{User: "alice", Pass: "wonder land"}.AsSha256Mechanism(),
		"SCRAM-SHA-512": scram.Auth{User: "alice", Pass: "wonder land"}.AsSha512Mechanism(),
	} {
		if err := produce(m); err != nil {
			t.Errorf("alice with %s: %v", name, err)
		}
	}
	if err := produce(plain.Auth{User: "bob", Pass: "builder"}.AsMechanism()); !errors.Is(err, kerr.TopicAuthorizationFailed) {
		t.Errorf("bob has no ACL and got %v", err)
	}
	if err := produce(plain.Auth{User: "alice", Pass: "wrong"}.AsMechanism()); !errors.Is(err, kerr.SaslAuthenticationFailed) {
		t.Errorf("a wrong password gave %v", err)
	}
}

func TestThreeBrokersOutliveOne(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{Brokers: 3, HeapMB: 256})
	topic := s.Topic(t, 3, map[string]string{"min.insync.replicas": "2"})
	cl := s.Client(t)
	write := func() {
		t.Helper()
		for i := range 30 {
			r := &kgo.Record{Topic: topic, Key: fmt.Append(nil, i)}
			if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
	write()
	s.Kill(t, 2)
	write()
	s.StartAgain(t, 2)
	write()
	if got := s.Consume(t, topic); len(got) != 90 {
		t.Errorf("%d records, want 90", len(got))
	}
}

func TestLogNamesWhatTheBrokerDid(t *testing.T) {
	t.Parallel()
	if log := Shared(t).Log(); !strings.Contains(log, "started") {
		t.Errorf("the log has no line about the start:\n%s", log)
	}
}
