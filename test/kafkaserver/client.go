package kafkaserver

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func (s *Server) client(opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(s.internal()...),
		// A broker that starts refuses connections: ask again soon, not after seconds.
		kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }),
		kgo.MetadataMinAge(20 * time.Millisecond),
	}, opts...)...)
}

// Admin returns a client that may do everything, closed with the test.
func (s *Server) Admin(t testing.TB) *kadm.Client {
	t.Helper()
	return kadm.NewClient(s.Client(t))
}

// Client returns a client on the unauthenticated listener, closed with the test.
func (s *Server) Client(t testing.TB, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := s.client(opts...)
	if err != nil {
		t.Fatalf("make a Kafka client: %v", err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// CreateTopic makes a topic with as many replicas as there are brokers, three at
// most, and waits until every partition has a leader.
func (s *Server) CreateTopic(t testing.TB, name string, partitions int, configs map[string]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	admin := s.Admin(t)
	settings := map[string]*string{}
	for k, v := range configs {
		settings[k] = &v
	}
	if _, err := admin.CreateTopic(ctx, int32(partitions), -1, settings, name); err != nil {
		t.Fatalf("create topic %s: %v", name, err)
	}
	retry := time.NewTicker(10 * time.Millisecond)
	defer retry.Stop()
	for {
		// Leaders are known before brokers have taken them on; an offset listing asks the leaders.
		offsets, err := admin.ListEndOffsets(ctx, name)
		if err == nil && offsets.Error() == nil && len(offsets[name]) == partitions {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("topic %s is not ready: %v", name, err)
		case <-retry.C:
		}
	}
}

// Topic makes a topic with a name that no other test has, and returns the name.
func (s *Server) Topic(t testing.TB, partitions int, configs map[string]string) string {
	t.Helper()
	name := "topic-" + strings.ToLower(rand.Text()[:12])
	s.CreateTopic(t, name, partitions, configs)
	return name
}
