package mongo

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/walrelay/walrelay/stage"
)

// BenchmarkTransactionsBesideEachOther is what the checkpoint costs: transactions of
// one event each, from 16 sessions at a time, each run until it does not conflict.
func BenchmarkTransactionsBesideEachOther(b *testing.B) {
	h := newHouse(b, Options{})
	for name, o := range map[string]Options{
		"one document": {}, "striped 64": {Checkpoint: Checkpoint{Stripes: 64}}, "striped 1024": {Checkpoint: Checkpoint{Stripes: 1024}}, "no checkpoint": {NoCheckpoint: true},
	} {
		b.Run(name, func(b *testing.B) {
			x := h.open(o)
			var attempts atomic.Int64
			b.SetParallelism(8) // times the cores
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := h.transact(func(ctx context.Context) error {
						attempts.Add(1)
						_, err := x.Flush(ctx, h.stage(x.Buffer(), some(1)...))
						return err
					}); err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(float64(attempts.Load())/float64(b.N), "attempts/op")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tx/s")
		})
	}
}

// BenchmarkDocumentsOfOneFlush is the price of a document in a full flush.
func BenchmarkDocumentsOfOneFlush(b *testing.B) {
	h := newHouse(b, Options{})
	x := h.open(Options{})
	events := some(stage.DefaultMaxEvents)
	b.ReportAllocs()
	for b.Loop() {
		h.flush(x, events...)
	}
	b.ReportMetric(float64(b.N*len(events))/b.Elapsed().Seconds(), "documents/s")
}

// BenchmarkPayload is the price of a payload of 600 bytes, which is paid twice.
func BenchmarkPayload(b *testing.B) {
	body := []byte(`{"id":"0198f3a0-0000-7000-8000-000000000001","total":"19.99","lines":[`)
	for i := range 10 {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, `{"sku":"A-1234567","quantity":3,"price":12.5,"gift":false}`...)
	}
	body = append(body, `]}`...)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := payloadDocument(body); err != nil {
			b.Fatal(err)
		}
	}
}
