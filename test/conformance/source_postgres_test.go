package conformance

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/relay"
	"github.com/walrelay/walrelay/slot"
	"github.com/walrelay/walrelay/test/pgserver"
)

// slotLedger is a Postgres database whose log is read through a slot.
type slotLedger struct {
	srv *pgserver.Server
	db  string
	opt slot.Options
}

func newSlotLedger(t *testing.T) *slotLedger {
	t.Helper()
	srv := pgserver.Shared(t, pgserver.V18)
	l := &slotLedger{srv: srv, db: srv.NewDatabase(t)}
	l.opt = slot.Options{
		Source: "orders", DSN: srv.URL(l.db), Slot: "c_" + l.db, Schema: forze(t), Bookkeeping: "walrelay",
		Tables: []slot.Table{{Schema: "public", Name: "outbox"}}, StatusInterval: time.Second, CheckInterval: time.Second,
	}.WithDefaults()
	conn := srv.Conn(t, l.db)
	if _, err := slot.Apply(t.Context(), conn, l.opt); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.dropSlot(t) })
	l.exec(t, `create table elsewhere (n int)`)
	return l
}

// dropSlot leaves room for the other tests that share the server.
func (l *slotLedger) dropSlot(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, l.srv.URL(l.db))
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = conn.Close(ctx) }()
	for ctx.Err() == nil {
		if _, err = conn.Exec(ctx, `select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = $1`, l.opt.Slot); err == nil {
			return
		}
		_, _ = conn.Exec(ctx, `select pg_sleep(0.1)`)
	}
	t.Errorf("slot %s stays: %v", l.opt.Slot, err)
}

func (l *slotLedger) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	l.srv.ExecIn(t, l.db, sql, args...)
}

func (l *slotLedger) open(t *testing.T) relay.Source {
	t.Helper()
	s, err := slot.Open(l.opt, slot.Observer{Reconnect: func(err error) { t.Logf("reconnect: %v", err) }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const insertEvents = `insert into public.outbox (id, event_id, outbox_route, event_type, occurred_at, payload, ordering_key, hlc)
 select gen_random_uuid(), ('00000000-0000-0000-0001-' || lpad(n::text, 12, '0'))::uuid, 'orders', 'made', now(), jsonb_build_object('n', n), 'k' || n, n
   from unnest($1::int[]) with ordinality u (n, at) order by at`

func (l *slotLedger) transaction(t *testing.T, end string, events []int, more ...string) {
	t.Helper()
	conn := l.srv.Conn(t, l.db)
	statements := append([]string{"begin", insertEvents}, append(more, end)...)
	for _, sql := range statements {
		var args []any
		if sql == insertEvents {
			args = []any{events}
		}
		if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

func (l *slotLedger) commit(t *testing.T, events ...int) {
	t.Helper()
	l.transaction(t, "commit", events)
}

func (l *slotLedger) rollBack(t *testing.T, events ...int) {
	t.Helper()
	l.transaction(t, "rollback", events)
}

func (l *slotLedger) vanish(t *testing.T, events ...int) {
	t.Helper()
	l.transaction(t, "commit", events, `delete from public.outbox where xmin = pg_current_xact_id()::xid`)
}

func (l *slotLedger) elsewhere(t *testing.T) {
	t.Helper()
	l.exec(t, `insert into elsewhere values (1)`)
}

func (l *slotLedger) cut(t *testing.T) {
	t.Helper()
	l.exec(t, `select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = $1`, l.opt.Slot)
}
