package postgres

import (
	"testing"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/pgserver"
)

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
