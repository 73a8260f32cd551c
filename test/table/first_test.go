// Package table runs the real relay on the outbox table: marks, polling,
// catch-up, the sweep, parking.
package table

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

const soon = 30 * time.Second

// on runs a test on the oldest and the newest Postgres, with a house of its own.
func on(t *testing.T, partitions int, f func(t *testing.T, h *rig.House, k *kafkaserver.Server)) {
	for _, v := range []pgserver.Version{pgserver.V15, pgserver.V18} {
		t.Run(fmt.Sprintf("pg%d", v), func(t *testing.T) {
			t.Parallel()
			k := kafkaserver.Shared(t)
			f(t, rig.NewHouse(t, pgserver.Shared(t, v), k.Brokers(), k.Topic(t, partitions, nil)), k)
		})
	}
}

// states waits until the outbox holds exactly these numbers of rows by status.
func states(t *testing.T, h *rig.House, want map[string]int) {
	t.Helper()
	rig.Eventually(t, fmt.Sprintf("rows %v", want), soon, func() error {
		got := map[string]int{}
		conn, err := pgx.Connect(t.Context(), h.PG.URL(h.Database)) // a look may be one of hundreds
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(context.Background()) }()
		rows, err := conn.Query(t.Context(), `select status, count(*)::int from outbox group by 1`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var s string
			var n int
			if err := rows.Scan(&s, &n); err != nil {
				return err
			}
			got[s] = n
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("rows are %v", got)
		}
		return rows.Err()
	})
}

// stop ends a relay that must end well.
func stop(t *testing.T, r *rig.Relay) {
	t.Helper()
	if code, took := r.Stop(); code != 0 || took > 10*time.Second {
		t.Errorf("the stop took %s and exited %d, want 0 at once", took, code)
	}
}

func TestRowThatTheLogBroughtIsMarkedPublished(t *testing.T) {
	t.Parallel()
	on(t, 3, func(t *testing.T, h *rig.House, k *kafkaserver.Server) {
		h.Source = "after_publish: mark"
		h.Init(t)
		r := h.Start(t)
		r.WaitReady(soon)
		h.Insert(t, "orders", "a", "b", "a")
		k.ConsumeN(t, 3, soon, h.Topic)
		states(t, h, map[string]int{"published": 3})
		var odd int
		if err := h.PG.Conn(t, h.Database).QueryRow(t.Context(), `select count(*) from outbox where published_at is null or last_error is not null or attempts <> 0`).Scan(&odd); err != nil || odd != 0 {
			t.Errorf("%d rows with other columns than the contract's (%v)", odd, err)
		}
		stop(t, r)
	})
}

func TestPolledRowArrivesAndIsMarked(t *testing.T) {
	t.Parallel()
	on(t, 3, func(t *testing.T, h *rig.House, k *kafkaserver.Server) {
		h.Postgres = "capture: poll"
		h.Source = "after_publish: mark"
		h.Init(t)
		h.Insert(t, "orders", "a", "b", "a")
		r := h.Start(t)
		r.WaitReady(soon)
		h.Insert(t, "orders", "c", "b")
		k.ConsumeN(t, 5, soon, h.Topic)
		states(t, h, map[string]int{"published": 5})
		stop(t, r)
	})
}

func TestRowsFromBeforeTheSlotComeFirst(t *testing.T) {
	t.Parallel()
	on(t, 1, func(t *testing.T, h *rig.House, k *kafkaserver.Server) {
		h.Source = "after_publish: mark"
		h.Init(t)
		// A slot that is younger than the rows, as at a go-live with a filled table.
		h.Insert(t, "orders", "a", "b", "a")
		if out, code := h.Command(t, "init", "--new-slot"); code != 0 {
			t.Fatalf("init --new-slot exited %d:\n%s", code, out)
		}
		h.Insert(t, "orders", "a")
		r := h.Start(t)
		r.WaitReady(soon)
		h.Insert(t, "orders", "b")
		states(t, h, map[string]int{"published": 5})
		stop(t, r)
		if n := len(k.Consume(t, h.Topic)); n != 5 {
			t.Errorf("%d records for 5 rows", n)
		}
	})
}

func TestRequeuedRowIsSweptUp(t *testing.T) {
	t.Parallel()
	on(t, 1, func(t *testing.T, h *rig.House, k *kafkaserver.Server) {
		h.Source = "after_publish: mark\nsweep_every: 500ms"
		h.Init(t)
		r := h.Start(t)
		r.WaitReady(soon)
		h.Insert(t, "orders", "a", "b")
		states(t, h, map[string]int{"published": 2})
		h.Exec(t, `insert into outbox (id, event_id, outbox_route, event_type, status, occurred_at, created_at, payload, ordering_key, available_at)
			values (gen_random_uuid(), gen_random_uuid(), 'orders', 'Later', 'pending', now(), now(), '{}', 'c', clock_timestamp() + interval '2 s')`)
		h.Exec(t, `update outbox set status = 'failed' where ordering_key = 'a'`)
		h.Exec(t, `update outbox set status = 'pending', processing_at = null, published_at = null, last_error = null, attempts = 0, available_at = null where status = 'failed'`)
		states(t, h, map[string]int{"published": 3})
		stop(t, r)
		if n := len(k.Consume(t, h.Topic)); n != 4 {
			t.Errorf("%d records, want 2, the one that was requeued, and the one that was due later", n)
		}
	})
}
