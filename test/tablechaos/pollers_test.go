package tablechaos

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

const (
	rows      = 100_000
	keys      = 1_000
	killEvery = 5 * time.Second
	batch     = 500
)

// Three relays poll one table, one of them with a broker that is slow for it alone
// (its linger), one of them killed every five seconds.
func TestThreePollersOneSlowOneKilledLoseNothingAndKeepEveryOrder(t *testing.T) {
	for _, claim := range []string{"row", "lease"} {
		t.Run(claim, func(t *testing.T) { // one after the other: each takes both cores
			k := kafkaserver.Shared(t)
			h := rig.NewHouse(t, pgserver.Shared(t, pgserver.V18), k.Brokers(), k.Topic(t, 6, nil))
			h.Postgres = "capture: poll\n"
			h.Source = fmt.Sprintf("after_publish: mark\npoll: {claim: %s, batch: %d, interval: 100ms, lease: 3s}\n", claim, batch)
			h.Kafka = "on_poison: park\n"
			h.Init(t)
			slow := *h
			slow.Kafka += "linger: 200ms\n"
			relays := []*rig.Relay{h.Start(t), slow.Start(t), h.Start(t)}
			for _, r := range relays {
				r.WaitReady(30 * time.Second)
			}
			began := time.Now()
			var writer sync.WaitGroup
			writer.Go(func() { write(t, h) })
			defer writer.Wait()
			kills := 0
			for !allPublished(t, h) {
				if time.Since(began) > 3*time.Minute {
					t.Fatalf("after %s not all is published: %s", time.Since(began), states(t, h))
				}
				pause(t, killEvery)
				relays[2].Kill()
				kills++
				relays[2] = h.Start(t)
			}
			took := time.Since(began)
			for i, r := range relays[:2] {
				st, err := r.Status()
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("relay %d published %d", i, st.Sources[0].Events.Published)
				if code, _ := r.Stop(); code != 0 {
					t.Errorf("relay %d exited %d", i, code)
				}
			}
			// What a killed relay had published and not marked: four batches at most.
			v := oracle.Require(t, committed(t, h), k.Consume(t, h.Topic), kills*4*batch)
			t.Logf("claim: %s: %d rows in %s, %d kills: %s", claim, rows, took.Round(100*time.Millisecond), kills, v)
			if v.Committed != rows {
				t.Errorf("%d rows were committed", v.Committed)
			}
		})
	}
}

// write commits all rows in transactions of a hundred. Rows are numbered in the
// order of their commits, and their ids ascend with it.
func write(t *testing.T, h *rig.House) {
	conn, err := pgx.Connect(t.Context(), h.PG.URL(h.Database))
	if err != nil {
		t.Errorf("writer: %v", err)
		return
	}
	defer func() { _ = conn.Close(context.Background()) }()
	const each = 100
	for n := 1; n <= rows; n += each {
		_, err := conn.Exec(t.Context(), `insert into public.outbox (id, event_id, outbox_route, event_type, status, occurred_at, created_at, payload, ordering_key)
			select ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, gen_random_uuid(), 'orders', 'Tested', 'pending', now(), now(),
			       jsonb_build_object('n', n), 'key ' || n * 7 % $3
			from generate_series($1::bigint, $2::bigint) as n order by n`, n, n+each-1, keys)
		if err != nil {
			t.Errorf("writer: %v", err)
			return
		}
	}
}

func allPublished(t *testing.T, h *rig.House) bool {
	return states(t, h) == fmt.Sprintf("published %d", rows)
}

// states says how many rows are in each.
func states(t *testing.T, h *rig.House) (s string) {
	t.Helper()
	conn, err := connect(h) // a look may be one of hundreds
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	err = conn.QueryRow(context.Background(),
		`select coalesce(string_agg(status || ' ' || n, ', ' order by status), '') from (select status, count(*) n from public.outbox group by 1) s`).Scan(&s)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func committed(t *testing.T, h *rig.House) []oracle.Commit {
	t.Helper()
	rows, err := h.PG.Conn(t, h.Database).Query(context.Background(), `select event_id::text, ordering_key, (payload->>'n')::bigint from public.outbox`)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (oracle.Commit, error) {
		c := oracle.Commit{Route: "orders"}
		err := row.Scan(&c.EventID, &c.Key, &c.Seq)
		return c, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func connect(h *rig.House) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return pgx.Connect(ctx, h.PG.URL(h.Database))
}
