package publish

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/walrelay/walrelay/event"
)

// blackhole opens a publisher into a fake cluster that acknowledges and forgets.
func blackhole(tb testing.TB, decided *atomic.Int64) *Publisher {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(12, "bench"), kfake.BlackholeProduce())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(cluster.Close)
	pub, err := Open(context.Background(), Options{
		Brokers: cluster.ListenAddrs(), Linger: DefaultLinger,
		Result: func(_ event.Ticket, err error) {
			if err != nil {
				tb.Error(err)
			}
			decided.Add(1)
		},
	}, Observer{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := pub.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return pub
}

func BenchmarkPublish(b *testing.B) {
	var decided atomic.Int64
	pub := blackhole(b, &decided)
	recs := make([]*event.Record, 1000)
	for i := range recs {
		recs[i] = record("bench", string(rune('a'+i%26)), uint64(i))
		recs[i].Hash = uint32(i) * 2654435761 & 0x7fffffff
		recs[i].Value = make([]byte, 500)
		for range 8 {
			recs[i].Headers = append(recs[i].Headers, event.Header{Key: "forze_event_id", Value: []byte("0123456789abcdef0123456789abcdef0123")})
		}
	}
	ctx := context.Background()
	b.ReportAllocs()
	b.SetBytes(500)
	i := 0
	for b.Loop() {
		if err := pub.Publish(ctx, recs[i%len(recs)], event.Ticket{}); err != nil {
			b.Fatal(err)
		}
		i++
	}
}
