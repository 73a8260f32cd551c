package protocol

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/walrelay/walrelay/test/pgserver"
)

// place is a database with a table, a publication and a slot.
type place struct {
	srv               *pgserver.Server
	db                string
	slot, publication string
	settings          []string // of the replication sessions, name and value in turn
}

// newPlace makes outbox (key text, body text) in a database of its own.
func newPlace(t *testing.T, srv *pgserver.Server) *place {
	t.Helper()
	p := &place{srv: srv, db: srv.NewDatabase(t), publication: "p"}
	p.exec(t, `create table outbox (key text, body text)`)
	p.exec(t, `create publication p for table outbox`)
	p.slot = p.newSlot(t, "s")
	return p
}

// newSlot makes one more slot; slots have one name space on the whole server.
func (p *place) newSlot(t *testing.T, suffix string) string {
	t.Helper()
	name := p.db + "_" + suffix
	p.exec(t, `select pg_create_logical_replication_slot($1, 'pgoutput')`, name)
	return name
}

// with is the place with another slot.
func (p *place) with(slot string) *place {
	q := *p
	q.slot = slot
	return &q
}

func (p *place) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	p.srv.ExecIn(t, p.db, sql, args...)
}

// insert writes rows, each in a transaction of its own.
func (p *place) insert(t *testing.T, keys ...string) {
	t.Helper()
	for _, k := range keys {
		p.exec(t, `insert into outbox values ($1, 'x')`, k)
	}
}

func (p *place) lsn(t *testing.T, sql string, args ...any) pglogrepl.LSN {
	t.Helper()
	lsn, err := pglogrepl.ParseLSN(query[string](t, p.srv, p.db, sql, args...))
	if err != nil {
		t.Fatal(err)
	}
	return lsn
}

// confirmed is what the server remembers of the slot.
func (p *place) confirmed(t *testing.T) pglogrepl.LSN {
	t.Helper()
	return p.lsn(t, `select confirmed_flush_lsn::text from pg_replication_slots where slot_name = $1`, p.slot)
}

// head is the end of the log.
func (p *place) head(t *testing.T) pglogrepl.LSN {
	t.Helper()
	return p.lsn(t, `select pg_current_wal_insert_lsn()::text`)
}

func (p *place) awaitConfirmed(t *testing.T, want pglogrepl.LSN) {
	t.Helper()
	eventually(t, "the slot to remember "+want.String(), func() bool { return p.confirmed(t) == want })
}

// walsender is the process that serves the slot; 0: none.
func (p *place) walsender(t *testing.T) int {
	t.Helper()
	return query[int](t, p.srv, p.db, `select coalesce(max(active_pid), 0) from pg_replication_slots where slot_name = $1`, p.slot)
}

func query[T any](t *testing.T, srv *pgserver.Server, db, sql string, args ...any) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var v T
	conn, err := dial(ctx, srv.URL(db))
	if err == nil {
		defer func() { _ = conn.Close(ctx) }()
		err = conn.QueryRow(ctx, sql, args...).Scan(&v)
	}
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !is(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s in vain for %s", patience, what)
		}
	}
}
