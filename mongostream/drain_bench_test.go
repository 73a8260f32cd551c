package mongostream

import (
	"context"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/test/mongoserver"
)

// BenchmarkDrain reads one backlog by the driver's change stream and by this one.
func BenchmarkDrain(b *testing.B) {
	const rows = 100_000
	server, err := mongoserver.Open(mongoserver.Options{OplogMB: 512})
	if err != nil {
		b.Fatal(err)
	}
	defer server.Close()
	h := newHouse(b, server)
	h.insert(0)
	h.begin()
	filler := strings.Repeat("x", 300)
	for n := 0; n < rows; n += 1000 {
		docs := make([]any, 1000)
		for i := range docs {
			doc := row(n + i)
			doc[3].Value = bson.D{{Key: "n", Value: n + i}, {Key: "filler", Value: filler}}
			docs[i] = doc
		}
		if _, err := h.outbox.InsertMany(ctx(b), docs, options.InsertMany().SetOrdered(false)); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("driver", func(b *testing.B) {
		for b.Loop() {
			cs, err := h.outbox.Watch(context.Background(), pipeline, options.ChangeStream().SetStartAfter(h.record().Token).SetBatchSize(1000))
			if err != nil {
				b.Fatal(err)
			}
			for range rows {
				if !cs.Next(context.Background()) {
					b.Fatal(cs.Err())
				}
			}
			_ = cs.Close(context.Background())
		}
		b.ReportMetric(float64(rows*b.N)/b.Elapsed().Seconds(), "events/s")
	})
	b.Run("stream", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s, err := Open(h.opt, Observer{})
			if err != nil {
				b.Fatal(err)
			}
			for n := 0; n < rows; {
				batch, err := s.Next(context.Background())
				if err != nil {
					b.Fatal(err)
				}
				n += len(batch.Events)
				batch.Memory.Release()
			}
			_ = s.Close(context.Background())
		}
		b.ReportMetric(float64(rows*b.N)/b.Elapsed().Seconds(), "events/s")
	})
}
