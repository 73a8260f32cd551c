package postgres

import (
	"fmt"
	"testing"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/pgserver"
)

func TestMarkWritesPendingAndForeignRowsAndLeavesTheOthersAlone(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h := newHouse(t, srv, event.Forze, forzeTable, nil)
		h.insert(1, 6, 10)
		h.exec(`update public.outbox set status = 'processing', processing_at = now(), attempts = 1, last_error = 'old' where hlc = 2;
 update public.outbox set status = 'failed', last_error = 'why' where hlc = 3;
 update public.outbox set status = 'published', published_at = '2026-01-01' where hlc = 4`)
		m := h.mark(
			outbox.Mark{ID: id(6), Error: "dead\x00 letter \xff"}, outbox.Mark{ID: id(1)}, outbox.Mark{ID: id(2)}, outbox.Mark{ID: id(3)},
			outbox.Mark{ID: id(4)}, outbox.Mark{ID: id(99), Xid: 3}, outbox.Mark{ID: id(98)}, outbox.Mark{ID: id(1)})
		if want := (outbox.Marked{Pending: 2, Foreign: 1, Settled: 3, Absent: 2}); fmt.Sprint(m) != fmt.Sprint(want) {
			t.Fatalf("marked %+v, want %+v", m, want)
		}
		h.wantRow(1, "published attempts=0 published_at")
		h.wantRow(2, "published attempts=1 published_at processing_at")
		h.wantRow(3, "failed attempts=0 error=why")
		h.wantRow(4, "published attempts=0 published_at")
		h.wantRow(5, "pending attempts=0")
		h.wantRow(6, "failed attempts=0 error=dead\\0 letter \uFFFD")
		if at := h.ask(`select (published_at = '2026-01-01')::text from public.outbox where hlc = 4`); at != "true" {
			t.Fatal("a published row was published again")
		}
	})
}

func TestMarkSaysNothingOfARowWhoseTransactionIsNotVisible(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h := newHouse(t, srv, event.Forze, forzeTable, nil)
		writer := srv.Conn(t, h.name)
		tx, err := writer.Begin(h.ctx())
		if err != nil {
			t.Fatal(err)
		}
		var xid uint32
		if err := tx.QueryRow(h.ctx(), `insert into public.outbox (id, outbox_route) values ($1, 'a') returning (xmin::text)::int8`, id(1)).Scan(&xid); err != nil {
			t.Fatal(err)
		}
		marks := []outbox.Mark{{ID: id(1), Xid: xid}, {ID: id(2), Xid: xid}}
		if m := h.mark(marks...); len(m.Unseen) != 2 || m.Absent != 0 {
			t.Fatalf("before it is visible: %+v", m)
		}
		if err := tx.Commit(h.ctx()); err != nil {
			t.Fatal(err)
		}
		if m := h.mark(marks...); m.Pending != 1 || m.Absent != 1 || len(m.Unseen) != 0 {
			t.Fatalf("once it is visible: %+v", m)
		}
		h.wantRow(1, "published attempts=0 published_at")
	})
}

func TestMarkDeletesWhereThatIsTheWayAndKeepsWhatFailed(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h := newHouse(t, srv, event.Forze, forzeTable, func(o *Options) { o.AfterPublish = Delete })
		h.insert(1, 3, 10)
		m := h.mark(outbox.Mark{ID: id(1)}, outbox.Mark{ID: id(2), Error: "no"}, outbox.Mark{ID: id(1)})
		if m.Pending != 2 || m.Settled != 1 {
			t.Fatalf("marked %+v", m)
		}
		if got := h.ask(`select string_agg(hlc || status || coalesce(last_error, ''), ' ' order by hlc) from public.outbox`); got != "2failedno 3pending" {
			t.Fatalf("left %s", got)
		}
		if m := h.mark(outbox.Mark{ID: id(1)}); m.Absent != 1 {
			t.Fatalf("marked again %+v", m)
		}
	})
}

func TestLookUpNamesWhatIsThereAndNotPending(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h := newHouse(t, srv, event.Forze, forzeTable, nil)
		h.insert(1, 4, 10)
		h.exec(`update public.outbox set status = (array['pending', 'processing', 'published', 'failed'])[hlc]`)
		done, err := h.LookUp(h.ctx(), ids(1, 9))
		if err != nil || len(done) != 3 || !done[id(2)] || !done[id(3)] || !done[id(4)] {
			t.Fatalf("%v, %v", done, err)
		}
	})
}

func TestMarkOfABasicRowSetsItsTimeOnce(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h := newHouse(t, srv, event.Basic, basicTable, nil)
		h.exec(`insert into public.outbox (id, aggregate_type, aggregate_id) values ('` + id(1) + `', 'a', 'k'), ('` + id(2) + `', 'a', 'k')`)
		h.exec(`update public.outbox set published_at = '2026-01-01' where seq = 2`)
		m := h.mark(outbox.Mark{ID: id(1), Error: "there is no state failed"}, outbox.Mark{ID: id(2)}, outbox.Mark{ID: id(3)})
		if m.Pending != 1 || m.Settled != 1 || m.Absent != 1 {
			t.Fatalf("marked %+v", m)
		}
		if got := h.ask(`select string_agg((published_at = '2026-01-01')::text, ' ' order by seq) from public.outbox`); got != "false true" {
			t.Fatalf("times %s", got)
		}
	})
}

func TestPendingReadsTheEndOfTheLogAfterTheRows(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h := newHouse(t, srv, event.Forze, forzeTable, nil)
		h.insert(1, 5, 10)
		h.exec(`update public.outbox set available_at = now() + interval '1 hour' where hlc = 2;
 update public.outbox set available_at = now() - interval '1 hour' where hlc = 4`)
		before := h.ask(`select pg_current_wal_lsn()`)
		got, at, err := h.Pending(h.ctx(), outbox.Request{Limit: 3})
		if err != nil {
			t.Fatal(err)
		}
		same(t, "pending", got, []string{id(1), id(3), id(4)})
		low, _ := event.ParseLSN(before)
		high, _ := event.ParseLSN(h.ask(`select pg_current_wal_insert_lsn()`))
		if at.LSN+longPageHeader < low || at.LSN > high {
			t.Fatalf("end %s is not between %s and %s", at, low, high)
		}
	})
}
