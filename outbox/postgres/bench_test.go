package postgres

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/pgserver"
)

// stocked is a house with n pending rows of about 500 B on one route, as the table of a busy shop.
func stocked(tb testing.TB, srv *pgserver.Server, n int, change func(o *Options)) *house {
	h := newHouse(tb, srv, event.Forze, forzeTable, change)
	h.stock(1, n)
	h.exec("vacuum analyze public.outbox")
	h.exec("checkpoint")
	return h
}

func (h *house) stock(from, to int) {
	h.t.Helper()
	h.exec(`insert into public.outbox (outbox_route, ordering_key, hlc, created_at, payload)
 select 'orders', 'k' || n % 1000, n, '2026-01-01 00:00+00'::timestamptz + n * interval '1 microsecond', jsonb_build_object('body', repeat('x', 400))
   from generate_series($1::int, $2) n`, from, to)
}

// BenchmarkClaimAndSettle claims and settles everything, beside a loop of
// hand-written SQL that does the same to a table of its own. rows/s is the figure.
func BenchmarkClaimAndSettle(b *testing.B) {
	const rows = 100_000
	srv := pgserver.Start(b, pgserver.Options{Version: pgserver.V18, Fsync: true})
	for _, mode := range []ClaimMode{ClaimRow, ClaimLease} {
		for _, after := range []AfterPublish{MarkIt, Delete} {
			for _, batch := range []int{500, 5000} {
				name := fmt.Sprintf("%s/%s/%d", mode, after, batch)
				change := func(o *Options) { o.Claim, o.AfterPublish = mode, after }
				b.Run(name+"/walrelay", func(b *testing.B) {
					for b.Loop() {
						b.StopTimer()
						h := stocked(b, srv, rows, change)
						b.StartTimer()
						began := time.Now()
						if n := h.drain(batch); n != rows {
							b.Fatalf("drained %d", n)
						}
						b.ReportMetric(rows/time.Since(began).Seconds(), "rows/s")
					}
				})
				b.Run(name+"/bare", func(b *testing.B) {
					for b.Loop() {
						b.StopTimer()
						h := stocked(b, srv, rows, change)
						b.StartTimer()
						began := time.Now()
						if n := h.drainBare(mode, after, batch); n != rows {
							b.Fatalf("drained %d", n)
						}
						b.ReportMetric(rows/time.Since(began).Seconds(), "rows/s")
					}
				})
			}
		}
	}
}

func (h *house) drain(batch int) (n int) {
	for {
		c := h.claim(outbox.Request{Limit: batch})
		if len(c.Rows) == 0 {
			return n
		}
		outcomes := make([]outbox.Outcome, len(c.Rows))
		for i := range c.Rows {
			outcomes[i] = outbox.Outcome{ID: c.Rows[i].ID, Fence: c.Fence}
		}
		if lost := h.settle(outcomes...); len(lost) > 0 {
			h.t.Fatalf("lost %d", len(lost))
		}
		n += len(c.Rows)
	}
}

// drainBare is the loop that somebody would write by hand for one known route.
func (h *house) drainBare(mode ClaimMode, after AfterPublish, batch int) (n int) {
	const all = `id::text, event_id::text, outbox_route, ordering_key, event_type, payload::text, occurred_at::text, hlc`
	take := `select ` + all + ` from public.outbox where outbox_route = 'orders' and status = 'pending' and available_at is null
 order by available_at, hlc, created_at, id limit $1`
	guard := "pending"
	if mode == ClaimRow {
		guard = "processing"
		take = `with c as (select id from public.outbox where outbox_route = 'orders' and status = 'pending' and available_at is null
 order by available_at, hlc, created_at, id limit $1 for update skip locked)
update public.outbox t set status = 'processing', processing_at = now() from c where t.id = c.id returning t.id::text, t.event_id::text, t.outbox_route, t.ordering_key, t.event_type, t.payload::text, t.occurred_at::text, t.hlc`
	}
	done := `update public.outbox set status = 'published', published_at = now(), last_error = null where id = any ($1::uuid[]) and status = '` + guard + `'`
	if after == Delete {
		done = `delete from public.outbox where id = any ($1::uuid[]) and status = '` + guard + `'`
	}
	for {
		rows, err := h.conn.Query(h.ctx(), take, batch)
		if err != nil {
			h.t.Fatal(err)
		}
		var ids []string
		for rows.Next() {
			ids = append(ids, string(rows.RawValues()[0]))
		}
		if err := rows.Err(); err != nil {
			h.t.Fatal(err)
		}
		if len(ids) == 0 {
			return n
		}
		h.exec(done, "{"+strings.Join(ids, ",")+"}")
		n += len(ids)
	}
}
