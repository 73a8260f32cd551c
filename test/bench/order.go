package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/walrelay/walrelay/hlc"
	"github.com/walrelay/walrelay/test/rig"
)

// orders are the ways a route may be put in order; the first is what the others are
// compared with.
var orders = []struct{ name, route string }{
	{"order commit", ", order: commit"},
	{"order hlc", ", order: hlc"},
	{"order hlc, within_key commit", ", order: hlc, within_key: commit"},
}

// stamped has the stamps of a fleet: of the moment of writing, up to 20 ms older.
var stamped = workload{name: "stamped", write: `insert into outbox (id, event_id, outbox_route, event_type, occurred_at, payload, ordering_key, hlc)
	select gen_random_uuid(), gen_random_uuid(), 'orders', 'OrderPlaced', clock_timestamp(), (` + payload + `)::jsonb, 'customer-' || i % 20000,
		(floor(extract(epoch from clock_timestamp()) * 1000 - 20 * random())::bigint << 16) + i % 65536
	from generate_series($1::bigint, $2::bigint) i`}

// ordered drains one backlog in each order, and then times live events.
func (s *site) ordered(t *crew) (results []result) {
	within(t, func(t *crew) {
		b := s.preload(t, stamped)
		runs := make([][]drained, len(orders))
		for round := range s.rounds + 1 { // the first one warms up
			for i, o := range orders {
				within(t, func(t *crew) {
					in := *b
					in.route = o.route
					d := s.once(t, &in, entrant{o.name, func(t *crew, slot string) drained { return s.walrelay(t, &in, slot, "") }}, fmt.Sprintf("round %d", round))
					if round > 0 {
						runs[i] = append(runs[i], d)
					}
				})
			}
		}
		for i, o := range orders {
			results = append(results, sum(o.name, runs[i], runs[0]))
		}
	})
	for _, o := range orders {
		results = append(results, s.orderedLive(t, o.name, o.route))
	}
	return results
}

const (
	liveRate    = 2000 // events a second
	livePerTx   = 4
	liveWriters = 8
	liveOpen    = 3 * time.Millisecond // that a transaction stays open
	liveWarmUp  = 3 * time.Second
	liveSpan    = 10 * time.Second
)

// orderedLive is latency at a steady rate of transactions of several rows. With the
// default settings an event waits for T + ε = 10.25 s at most, and for staged + clock_error +
// every = 950 ms (and the way to the consumer) while transactions are short.
func (s *site) orderedLive(t *crew, name, route string) (r result) {
	within(t, func(t *crew) {
		h := rig.NewHouse(t, s.pg, s.kafka.Brokers(), s.kafka.Topic(t, partitions, nil))
		h.Postgres, h.Routes = "check_interval: 10s\n", fmt.Sprintf("\"*\": {topic: %s%s}\n", h.Topic, route)
		h.Init(t)
		relay := h.Start(t)
		relay.WaitReady(30 * time.Second)

		total := int((liveWarmUp + liveSpan).Seconds() * liveRate)
		sent, took := make([]atomic.Int64, total), make([]time.Duration, total)
		began := time.Now()
		var work sync.WaitGroup
		failures := make([]error, liveWriters)
		for i := range liveWriters {
			conn := s.pg.Conn(t, h.Database)
			work.Go(func() { failures[i] = writeStamped(conn, sent, i*livePerTx, began) })
		}
		cpu, _ := cpuOf(relay.PID())
		consume(t, s.kafka.Client(t, kgo.ConsumeTopics(h.Topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())), sent, took, began)
		span := time.Since(began)
		after, _ := cpuOf(relay.PID())
		work.Wait()
		for _, err := range failures {
			if err != nil {
				t.Fatalf("writing: %v", err)
			}
		}
		late, early := "–", "–"
		if st, err := relay.Status(); err == nil && st.Sources[0].Order != nil {
			late, early = fmt.Sprint(st.Sources[0].Order.Late), fmt.Sprint(st.Sources[0].Order.Early)
		}
		_, peak := relay.RSS()
		if code, _ := relay.Stop(); code != 0 {
			t.Errorf("walrelay exited %d", code)
		}
		took = took[int(liveWarmUp.Seconds()*liveRate):]
		slices.Sort(took)
		r = result{
			Name: fmt.Sprintf("%s, %d events/s", name, liveRate), RowsPerS: new(float64(total) / span.Seconds()),
			CPUPerEvent: new(micros(after-cpu, total)), PeakRSS: new(float64(peak) / (1 << 20)), P50: quantile(took, 0.5), P99: quantile(took, 0.99),
		}
		t.Logf("live, %s: p50 %.2f ms, p99 %.2f ms, max %.2f ms, %s late, %s early", name, *r.P50, *r.P99, *quantile(took, 1), late, early)
	})
	return r
}

// writeStamped is one of several writers: its transactions are every liveWriters-th, and
// stamped by the clock of this process before they begin.
func writeStamped(conn *pgx.Conn, sent []atomic.Int64, first int, began time.Time) error {
	ctx := context.Background()
	insert := `insert into outbox (id, event_id, outbox_route, event_type, occurred_at, payload, ordering_key, hlc)
		select gen_random_uuid(), gen_random_uuid(), 'orders', 'OrderPlaced', clock_timestamp(), (` + payload + `)::jsonb, i::text, $3::bigint + i - $1
		from generate_series($1::bigint, $2::bigint) i`
	for n := first; n < len(sent); n += liveWriters * livePerTx {
		time.Sleep(time.Until(began.Add(time.Duration(n) * time.Second / liveRate)))
		stamp, err := hlc.Pack(time.Now().UnixMilli(), int64(first))
		if err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, "begin"); err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, insert, n, n+livePerTx-1, int64(stamp)); err != nil {
			return err
		}
		time.Sleep(liveOpen)
		for i := n; i < n+livePerTx; i++ {
			sent[i].Store(int64(time.Since(began)))
		}
		if _, err := conn.Exec(ctx, "commit"); err != nil {
			return err
		}
	}
	return nil
}
