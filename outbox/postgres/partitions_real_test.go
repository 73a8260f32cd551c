package postgres

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/pgserver"
)

// partitionedTable has a partition for each of five days from 2026-01-01, and a default one.
func partitionedTable() string {
	var ddl strings.Builder
	ddl.WriteString(strings.NewReplacer("primary key default", "default", ", unique (outbox_route, event_id))", ", primary key (created_at, id)) partition by range (created_at)").Replace(forzeTable))
	for d := 1; d <= 5; d++ {
		ddl.WriteString(fmt.Sprintf(`create table public.day%d partition of public.outbox for values from ('2026-01-0%d 00:00+00') to ('2026-01-0%d 00:00+00');`, d, d, d+1))
	}
	return ddl.String() + `create table public.rest partition of public.outbox default; create index on public.outbox (id);`
}

// fill makes a row a day; the 6th goes to the default partition.
func (h *house) fill() {
	h.exec(`insert into public.outbox (id, outbox_route, ordering_key, hlc, created_at)
 select ('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid, 'a', 'k' || n, n, '2026-01-01 12:00+00'::timestamptz + (n - 1) * interval '1 day' from generate_series(1, 6) n`)
}

func TestAPartitionedTableIsClaimedAndSettledLikeAnother(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		for _, mode := range []ClaimMode{ClaimRow, ClaimLease} {
			h := newHouse(t, srv, event.Forze, partitionedTable(), func(o *Options) { o.Claim = mode })
			h.fill()
			c := h.claim(outbox.Request{Limit: 5})
			same(t, string(mode), rowIDs(c), ids(1, 5))
			var outcomes []outbox.Outcome
			for n := 1; n <= 5; n++ {
				outcomes = append(outcomes, outbox.Outcome{ID: id(n), Fence: c.Fence, Verdict: []outbox.Verdict{outbox.Published, outbox.Retry, outbox.Failed, outbox.Released, outbox.Published}[n-1], Attempts: 1, Error: "x"})
			}
			if lost := h.settle(outcomes...); len(lost) != 0 {
				t.Fatalf("lost %v", lost)
			}
			if got := h.ask(`select string_agg(status, ' ' order by id) from public.outbox`); got != "published pending failed pending published pending" {
				t.Fatal(got)
			}
			if m := h.mark(outbox.Mark{ID: id(6)}, outbox.Mark{ID: id(3)}, outbox.Mark{ID: id(7)}); m.Pending != 1 || m.Settled != 1 || m.Absent != 1 {
				t.Fatalf("marked %+v", m)
			}
			if n, err := h.Requeue(h.ctx(), ids(1, 6)); err != nil || n != 1 {
				t.Fatal(n, err)
			}
			if f, err := h.Figures(h.ctx()); err != nil || f.Pending != 3 {
				t.Fatalf("%+v, %v", f, err)
			}
		}
	})
}

func TestOnlyPartitionsWhoseEveryRowIsPublishedAndOldAreDropped(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h := newHouse(t, srv, event.Forze, partitionedTable(), nil)
		h.fill()
		h.exec(`update public.outbox set status = 'published', published_at = created_at; update public.outbox set status = 'failed' where hlc = 2; update public.outbox set published_at = now() where hlc = 3`)
		retain := func(want ...string) {
			t.Helper()
			r, err := h.Retain(h.ctx(), 24*time.Hour, 10)
			if err != nil || !slices.Equal(r.Partitions, want) {
				t.Fatalf("dropped %v, want %v: %v", r.Partitions, want, err)
			}
		}
		foreign, err := srv.Conn(t, h.name).Begin(h.ctx())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := foreign.Exec(h.ctx(), `select from public.day1`); err != nil {
			t.Fatal(err)
		}
		retain("public.day4") // day1 is in use
		if err := foreign.Rollback(h.ctx()); err != nil {
			t.Fatal(err)
		}
		retain("public.day1")
		h.exec(`update public.outbox set status = 'published' where hlc = 2; update public.outbox set published_at = created_at`)
		retain("public.day2", "public.day3")
		retain() // day5 is the newest, rest the default
		if got := h.ask(`select string_agg(relname, ' ' order by relname) from pg_class where relname like 'day_' or relname = 'rest'`); got != "day5 rest" {
			t.Fatalf("left %s", got)
		}
	})
}

// A row that comes between the first look and the lock is found under the lock.
func TestAPartitionThatGotARowMeanwhileStays(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		for _, status := range []string{"pending", "processing", "failed"} {
			h := newHouse(t, srv, event.Forze, partitionedTable(), nil)
			h.fill()
			h.exec(`update public.outbox set status = 'published', published_at = created_at`)
			foreign, err := srv.Conn(t, h.name).Begin(h.ctx())
			if err != nil {
				t.Fatal(err)
			}
			// Not committed at the first look, and the lock waits for it.
			if _, err := foreign.Exec(h.ctx(), `insert into public.outbox (outbox_route, created_at, status) values ('b', '2026-01-01 13:00+00', $1)`, status); err != nil {
				t.Fatal(err)
			}
			done := make(chan outbox.Retained)
			go func() {
				r, err := h.Retain(h.ctx(), 24*time.Hour, 10)
				if err != nil {
					t.Error(err)
				}
				done <- r
			}()
			h.until("the lock is waited for", `select (count(*) > 0)::text from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)
			if err := foreign.Commit(h.ctx()); err != nil {
				t.Fatal(err)
			}
			if r := <-done; slices.Contains(r.Partitions, "public.day1") || !slices.Contains(r.Partitions, "public.day2") {
				t.Fatalf("%s: dropped %v", status, r.Partitions)
			}
		}
	})
}
