package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/walrelay/walrelay/test/rig"
)

const (
	perSecond = 1000
	writers   = 4
	warmUp    = 3 * time.Second
	measured  = 20 * time.Second
)

// latency writes single-row transactions at a steady pace and times each from
// just before its COMMIT is sent to the moment when a consumer has it, on the
// clock of this one process.
func (s *site) latency(t *crew, name, kafka string) (r result) {
	within(t, func(t *crew) {
		h := rig.NewHouse(t, s.pg, s.kafka.Brokers(), s.kafka.Topic(t, partitions, nil))
		h.Postgres, h.Kafka = "check_interval: 10s\n", kafka
		h.Init(t)
		relay := h.Start(t)
		relay.WaitReady(30 * time.Second)

		total := int((warmUp + measured).Seconds() * perSecond)
		sent := make([]atomic.Int64, total) // nanoseconds since the start
		took := make([]time.Duration, total)
		began := time.Now()
		var work sync.WaitGroup
		var mu sync.Mutex
		var failure error
		for i := range writers {
			conn := s.pg.Conn(t, h.Database)
			work.Go(func() {
				if err := write(conn, sent, i, began); err != nil {
					mu.Lock()
					failure = err
					mu.Unlock()
				}
			})
		}
		cpu, _ := cpuOf(relay.PID())
		consume(t, s.kafka.Client(t, kgo.ConsumeTopics(h.Topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())), sent, took, began)
		span := time.Since(began)
		after, _ := cpuOf(relay.PID())
		work.Wait()
		if failure != nil {
			t.Fatalf("writing: %v", failure)
		}
		_, peak := relay.RSS()
		if code, _ := relay.Stop(); code != 0 {
			t.Errorf("walrelay exited %d", code)
		}
		took = took[int(warmUp.Seconds()*perSecond):]
		slices.Sort(took)
		at := func(q float64) *float64 { return quantile(took, q) }
		r = result{
			Name: "walrelay, 1000 commits/s, " + name, RowsPerS: new(float64(total) / span.Seconds()),
			CPUPerEvent: new(micros(after-cpu, total)), PeakRSS: new(float64(peak) / (1 << 20)), P50: at(0.5), P99: at(0.99),
		}
		t.Logf("latency, %s: p50 %.2f ms, p99 %.2f ms, max %.2f ms", name, *r.P50, *r.P99, *at(1))
	})
	return r
}

// write is one of several writers: it takes every writers-th event, at its time.
func write(conn *pgx.Conn, sent []atomic.Int64, first int, began time.Time) error {
	ctx := context.Background()
	for n := first; n < len(sent); n += writers {
		time.Sleep(time.Until(began.Add(time.Duration(n) * time.Second / perSecond)))
		if _, err := conn.Exec(ctx, "begin"); err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, fmt.Sprintf(`insert into outbox (id, event_id, outbox_route, event_type, occurred_at, payload, ordering_key, hlc)
			select gen_random_uuid(), gen_random_uuid(), 'orders', 'OrderPlaced', clock_timestamp(), (%s)::jsonb, i::text, i << 16 from (select $1::bigint) as s(i)`, payload), n); err != nil {
			return err
		}
		sent[n].Store(int64(time.Since(began)))
		if _, err := conn.Exec(ctx, "commit"); err != nil {
			return err
		}
	}
	return nil
}

// consume reads until every event has come.
func consume(t *crew, cl *kgo.Client, sent []atomic.Int64, took []time.Duration, began time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	for seen := 0; seen < len(sent); {
		fetches := cl.PollFetches(ctx)
		now := time.Since(began)
		if ctx.Err() != nil {
			t.Fatalf("%d of %d events came in 5 minutes", seen, len(sent))
		}
		fetches.EachRecord(func(r *kgo.Record) {
			n, err := strconv.Atoi(string(r.Key))
			if err != nil || n < 0 || n >= len(sent) || took[n] != 0 {
				t.Fatalf("key %q came, twice or wrong", r.Key)
			}
			took[n] = now - time.Duration(sent[n].Load())
			seen++
		})
	}
}
