package postgres

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/pgserver"
)

func TestRenewMovesTheFenceOfWhatIsStillHeld(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h := newHouse(t, srv, event.Forze, forzeTable, nil)
		h.insert(1, 3, 3)
		c := h.claim(outbox.Request{Limit: 3})
		h.exec(`update public.outbox set status = 'pending', processing_at = null where hlc = 2`)
		fence, held, err := h.Renew(h.ctx(), c.Fence, append(ids(1, 3), id(1)))
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(held)
		same(t, "held", slices.Compact(held), []string{id(1), id(3)})
		if fence <= c.Fence {
			t.Fatalf("fence %s after %s", fence, c.Fence)
		}
		if lost := h.settle(outbox.Outcome{ID: id(1), Fence: c.Fence}, outbox.Outcome{ID: id(3), Fence: fence}); !slices.Equal(lost, []int{0}) {
			t.Fatalf("lost %v", lost)
		}
		h.wantRow(1, "processing attempts=0 processing_at")
		h.wantRow(3, "published attempts=0 published_at processing_at")
	})
}

func TestStaleClaimsAreGivenBackOnceAndTheirOldOutcomesAreLost(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h := newHouse(t, srv, event.Forze, forzeTable, nil)
		h.insert(1, 6, 6)
		c := h.claim(outbox.Request{Limit: 6})
		h.exec(`update public.outbox set processing_at = now() - interval '1 hour' where hlc in (1, 2, 3); update public.outbox set processing_at = null where hlc = 6`)
		reclaim := func(r outbox.Reclaim, want int) {
			t.Helper()
			if n, err := h.Reclaim(h.ctx(), r); err != nil || n != want {
				t.Fatalf("reclaimed %d, want %d: %v", n, want, err)
			}
		}
		reclaim(outbox.Reclaim{OlderThan: time.Minute, Except: []string{id(3)}, Limit: 1}, 1)
		reclaim(outbox.Reclaim{OlderThan: time.Minute, Except: []string{id(3)}, Limit: 10}, 1)
		reclaim(outbox.Reclaim{OlderThan: time.Minute, Except: []string{id(3)}}, 0)
		h.wantRow(1, "pending attempts=1 due")
		h.wantRow(2, "pending attempts=1 due")
		h.wantRow(3, "processing attempts=0 processing_at")
		h.wantRow(6, "processing attempts=0")
		// By tenure: only what was claimed within it, and only its shard.
		shard := func(n, of int) (s int) {
			if _, err := fmt.Sscan(h.ask(`select ((hashtextextended(ordering_key, 0) & 9223372036854775807) % $2)::text from public.outbox where hlc = $1`, n, of), &s); err != nil {
				t.Fatal(err)
			}
			return s
		}
		s := shard(4, 2)
		tenure := outbox.Tenure{Shard: s, From: string(c.Fence), Until: string(c.Fence)}
		want := 1
		if shard(5, 2) == s {
			want++
		}
		reclaim(outbox.Reclaim{Shards: outbox.Shards{Of: 2, Own: []int{1 - s}}, Tenures: []outbox.Tenure{tenure}}, 0)
		reclaim(outbox.Reclaim{Shards: outbox.Shards{Of: 2, Own: []int{s}}, Tenures: []outbox.Tenure{tenure}}, want)
		h.wantRow(4, "pending attempts=1 due")
		if lost := h.settle(outbox.Outcome{ID: id(1), Fence: c.Fence}, outbox.Outcome{ID: id(4), Fence: c.Fence}); len(lost) != 2 {
			t.Fatalf("a reclaimed row took its old outcome: lost %v", lost)
		}
		same(t, "claimed again", rowIDs(h.claim(outbox.Request{Limit: 2})), []string{id(1), id(2)})
	})
}

func TestRequeueClearsWhatFailedRowsHad(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h := newHouse(t, srv, event.Forze, forzeTable, nil)
		h.insert(1, 3, 3)
		h.exec(`update public.outbox set status = 'failed', attempts = 3, last_error = 'x', available_at = now(), processing_at = now(), published_at = now() where hlc < 3`)
		if n, err := h.Requeue(h.ctx(), []string{id(1), id(3), id(9), id(1)}); err != nil || n != 1 {
			t.Fatalf("requeued %d: %v", n, err)
		}
		h.wantRow(1, "pending attempts=0")
		h.wantRow(2, "failed attempts=3 published_at processing_at due error=x")
	})
}

func TestUnfinishedRowsAreThoseTriedAndThoseInHand(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h := newHouse(t, srv, event.Forze, forzeTable, nil)
		h.insert(1, 8, 4)
		h.exec(`update public.outbox set status = 'processing', processing_at = now() where hlc in (2, 6);
 update public.outbox set attempts = 1, available_at = now() + interval '1 hour' where hlc = 3; update public.outbox set attempts = 1, available_at = now() where hlc = 5;
 update public.outbox set available_at = now() + interval '1 hour' where hlc = 7; update public.outbox set status = 'failed', attempts = 4 where hlc = 8`)
		rows, more, err := h.Unfinished(h.ctx(), outbox.Shards{}, 4)
		if err != nil || more {
			t.Fatal(more, err)
		}
		want := []outbox.Unfinished{
			{ID: id(2), Key: "k2", Route: "route2", Processing: true, Due: true},
			{ID: id(3), Key: "k3", Route: "route0"},
			{ID: id(5), Key: "k1", Route: "route2", Due: true},
			{ID: id(6), Key: "k2", Route: "route0", Processing: true, Due: true},
		}
		if !slices.Equal(rows, want) {
			t.Fatalf("got %+v", rows)
		}
		if rows, more, _ = h.Unfinished(h.ctx(), outbox.Shards{}, 3); len(rows) != 3 || !more {
			t.Fatalf("%d rows, more %v", len(rows), more)
		}
	})
}

func TestPublishedRowsAreReadAgainOldestFirst(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h := newHouse(t, srv, event.Forze, forzeTable, nil)
		h.insert(1, 9, 3)
		h.exec(`update public.outbox set status = 'published', published_at = '2026-02-01 00:00+00'::timestamptz + (10 - hlc) * interval '1 day' where hlc > 2`)
		read := func(f outbox.Filter, want ...int) {
			t.Helper()
			c, err := h.Read(h.ctx(), f)
			if err != nil {
				t.Fatal(err)
			}
			var list []string
			for _, n := range want {
				list = append(list, id(n))
			}
			same(t, fmt.Sprintf("%+v", f), rowIDs(c), list)
		}
		read(outbox.Filter{Limit: 3}, 9, 8, 7)
		read(outbox.Filter{Limit: 3, After: id(7)}, 6, 5, 4)
		read(outbox.Filter{Route: "route0"}, 9, 6, 3)
		read(outbox.Filter{Since: "2026-02-04 00:00+00", Until: "2026-02-06"}, 7, 6)
		read(outbox.Filter{EventID: "00000000-0000-0000-0001-000000000004"}, 4)
		h.wantRow(4, "published attempts=0 published_at")
	})
}

func TestFiguresCountByStateAndKnowTheOldest(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h := newHouse(t, srv, event.Forze, forzeTable, nil)
		figures := func() outbox.Figures {
			t.Helper()
			f, err := h.Figures(h.ctx())
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		if f := figures(); f != (outbox.Figures{}) {
			t.Fatalf("of an empty table: %+v", f)
		}
		h.insert(1, 10, 3)
		h.exec(`update public.outbox set created_at = now() - interval '1 hour';
 update public.outbox set created_at = now() - interval '2 hours', available_at = now() + interval '1 hour', attempts = 2 where hlc = 3;
 update public.outbox set status = 'processing' where hlc in (4, 5); update public.outbox set status = 'failed', created_at = '2020-01-01' where hlc = 6;
 update public.outbox set status = 'published', created_at = '2020-01-01' where hlc > 8`)
		f := figures()
		if f.Pending != 5 || f.Retrying != 1 || f.Processing != 2 || f.Failed != 1 || f.OldestPending < 2*time.Hour || f.OldestPending > 3*time.Hour {
			t.Fatalf("%+v", f)
		}
		h.exec(`update public.outbox set status = 'published'`)
		if f := figures(); f.Pending+f.Retrying+f.Processing+f.Failed != 0 || f.OldestPending != 0 {
			t.Fatalf("all published: %+v", f)
		}
		b := newHouse(t, srv, event.Basic, basicTable, nil)
		b.exec(`insert into public.outbox (aggregate_type, aggregate_id, created_at) select 'a', 'k', now() - n * interval '1 hour' from generate_series(1, 3) n`)
		if f, err := b.Figures(b.ctx()); err != nil || f.Pending != 3 || f.OldestPending < 3*time.Hour {
			t.Fatalf("%+v, %v", f, err)
		}
	})
}

func TestRetainDeletesOnlyOldPublishedRows(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h := newHouse(t, srv, event.Forze, forzeTable, nil)
		h.insert(1, 20, 5)
		h.exec(`update public.outbox set status = 'published', published_at = now() - interval '2 days' where hlc <= 10; update public.outbox set available_at = now() where hlc in (2, 3);
 update public.outbox set status = 'published', published_at = now() where hlc = 11; update public.outbox set status = 'failed', published_at = now() - interval '2 days' where hlc = 12`)
		retain := func(keep time.Duration, want int64) {
			t.Helper()
			if r, err := h.Retain(h.ctx(), keep, 4); err != nil || r.Rows != want {
				t.Fatalf("deleted %d, want %d: %v", r.Rows, want, err)
			}
		}
		retain(0, 0)
		for _, want := range []int64{4, 4, 2, 0} {
			retain(24*time.Hour, want)
		}
		if got := h.ask(`select string_agg(hlc::text, ' ' order by hlc) from public.outbox`); got != "11 12 13 14 15 16 17 18 19 20" {
			t.Fatalf("left %s", got)
		}
		b := newHouse(t, srv, event.Basic, basicTable, nil)
		b.exec(`insert into public.outbox (aggregate_type, aggregate_id, published_at) select 'a', 'k', case when n > 1 then now() - n * interval '1 day' end from generate_series(1, 9) n`)
		if r, err := b.Retain(b.ctx(), 36*time.Hour, 5); err != nil || r.Rows != 5 {
			t.Fatalf("deleted %d: %v", r.Rows, err)
		}
		if got := b.ask(`select string_agg(seq::text, ' ' order by seq) from public.outbox`); got != "1 2 3 4" {
			t.Fatalf("left %s", got)
		}
	})
}
