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

// BenchmarkClaimAndSettle claims and settles batches, in turns with hand-written SQL that
// does the same to a table of its own: whatever else the machine does hits both. The figures are
// rows/s of each, and what walrelay reaches of the other.
func BenchmarkClaimAndSettle(b *testing.B) {
	const rows = 100_000
	srv := pgserver.Start(b, pgserver.Options{Version: pgserver.V18, Fsync: true})
	for _, mode := range []ClaimMode{ClaimRow, ClaimLease} {
		for _, after := range []AfterPublish{MarkIt, Delete} {
			for _, batch := range []int{500, 5000} {
				b.Run(fmt.Sprintf("%s/%s/%d", mode, after, batch), func(b *testing.B) {
					change := func(o *Options) { o.Claim, o.AfterPublish = mode, after }
					ours, theirs := stocked(b, srv, rows, change), stocked(b, srv, rows, change)
					var took, bare time.Duration
					turns := 0
					for b.Loop() {
						for range rows / batch {
							began := time.Now()
							n := ours.turn(batch)
							took += time.Since(began)
							began = time.Now()
							m := theirs.bareTurn(mode, after, batch)
							bare += time.Since(began)
							if n != batch || m != batch {
								b.Fatalf("turn %d took %d and %d rows", turns, n, m)
							}
							turns++
						}
					}
					done := float64(turns * batch)
					b.ReportMetric(done/took.Seconds(), "rows/s")
					b.ReportMetric(done/bare.Seconds(), "bare-rows/s")
					b.ReportMetric(bare.Seconds()/took.Seconds(), "of-bare")
				})
			}
		}
	}
}

// turn claims one batch and publishes it.
func (h *house) turn(batch int) int {
	c := h.claim(outbox.Request{Limit: batch})
	outcomes := make([]outbox.Outcome, len(c.Rows))
	for i := range c.Rows {
		outcomes[i] = outbox.Outcome{ID: c.Rows[i].ID, Fence: c.Fence}
	}
	if lost := h.settle(outcomes...); len(lost) > 0 {
		h.t.Fatalf("lost %d", len(lost))
	}
	return len(c.Rows)
}

// bareTurn is what somebody would write by hand for one known route.
func (h *house) bareTurn(mode ClaimMode, after AfterPublish, batch int) int {
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
	rows, err := h.conn.Query(h.ctx(), take, batch)
	if err != nil {
		h.t.Fatal(err)
	}
	var ids []string
	for rows.Next() {
		v, err := rows.Values()
		if err != nil {
			h.t.Fatal(err)
		}
		ids = append(ids, v[0].(string))
	}
	if err := rows.Err(); err != nil {
		h.t.Fatal(err)
	}
	h.exec(done, "{"+strings.Join(ids, ",")+"}")
	return len(ids)
}
