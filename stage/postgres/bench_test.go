package postgres

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/walrelay/walrelay/stage"
	"github.com/walrelay/walrelay/test/pgserver"
)

// BenchmarkTransactionsBesideEachOther is what the checkpoint's row costs where
// commits are durable: transactions of one event each, from 16 sessions at a time.
func BenchmarkTransactionsBesideEachOther(b *testing.B) {
	pg := pgserver.Start(b, pgserver.Options{Version: pgserver.V18, Fsync: true})
	h := newHouse(b, pg, byPgx)
	conf, err := pgxpool.ParseConfig(pg.URL(h.name))
	if err != nil {
		b.Fatal(err)
	}
	conf.MaxConns = 16
	pool, err := pgxpool.NewWithConfig(b.Context(), conf)
	if err != nil {
		b.Fatal(err)
	}
	defer pool.Close()
	for name, o := range map[string]Options{
		"one row": {}, "striped": {Checkpoint: Checkpoint{Stripes: 64}}, "no checkpoint": {NoCheckpoint: true},
	} {
		b.Run(name, func(b *testing.B) {
			x := h.open(o)
			b.SetParallelism(8) // times the cores
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := pgx.BeginFunc(context.Background(), pool, func(tx pgx.Tx) error {
						buf := h.stage(x.Buffer(), some(1)...)
						_, err := x.Flush(context.Background(), Pgx(tx), buf)
						return err
					}); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

// BenchmarkRowsOfOneFlush is the price of a row in a full flush.
func BenchmarkRowsOfOneFlush(b *testing.B) {
	h := newHouse(b, pgserver.Shared(b, pgserver.V18), byPgx)
	x := h.open(Options{})
	events := some(stage.DefaultMaxEvents)
	b.ReportAllocs()
	for b.Loop() {
		h.flush(x, events...)
	}
	b.ReportMetric(float64(b.N*len(events))/b.Elapsed().Seconds(), "rows/s")
}
