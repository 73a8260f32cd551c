package postgres

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver for database/sql

	"github.com/walrelay/walrelay/hlc"
	"github.com/walrelay/walrelay/stage"
	"github.com/walrelay/walrelay/test/pgserver"
)

func TestMain(m *testing.M) { pgserver.Main(m) }

// forzeTable is what walrelay init makes (slot/ddl_forze.go); test/library writes
// into what it really makes.
const forzeTable = `create table public.outbox (
 id uuid primary key, outbox_route text not null, event_id uuid not null, event_type text not null,
 tenant_id uuid, execution_id uuid, correlation_id uuid, causation_id uuid, occurred_at timestamptz not null, payload jsonb not null,
 status text not null default 'pending' check (status in ('pending', 'processing', 'published', 'failed')),
 created_at timestamptz not null default now(), published_at timestamptz, processing_at timestamptz, available_at timestamptz,
 last_error text, attempts int not null default 7, ordering_key text, traceparent text, hlc bigint, unique (outbox_route, event_id));
create table public.hlc_checkpoint (node_key text primary key, hlc bigint not null)`

// way is how the application speaks to its database.
type way string

const (
	byPgx way = "pgx"
	bySQL way = "database/sql"
)

// house is an application's database.
type house struct {
	t    testing.TB
	way  way
	name string
	pg   *pgserver.Server
	pool *pgxpool.Pool
	sql  *sql.DB
}

// onEach runs body on the oldest and the newest Postgres, through pgx and through
// database/sql.
func onEach(t *testing.T, body func(*testing.T, *house)) {
	t.Helper()
	t.Parallel()
	for _, v := range []pgserver.Version{pgserver.V15, pgserver.V18} {
		for _, w := range []way{byPgx, bySQL} {
			t.Run(v.String()+" "+string(w), func(t *testing.T) {
				t.Parallel()
				body(t, newHouse(t, pgserver.Shared(t, v), w))
			})
		}
	}
}

// onEachServer runs body where the way does not matter.
func onEachServer(t *testing.T, body func(*testing.T, *house)) {
	t.Helper()
	t.Parallel()
	for _, v := range []pgserver.Version{pgserver.V15, pgserver.V18} {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			body(t, newHouse(t, pgserver.Shared(t, v), byPgx))
		})
	}
}

func newHouse(t testing.TB, pg *pgserver.Server, w way) *house {
	t.Helper()
	h := &house{t: t, way: w, pg: pg, name: pg.NewDatabase(t)}
	// Who waits for a lock that never comes shall fail the test, not hang it.
	pg.Exec(t, "alter database "+h.name+" set lock_timeout = '30s'")
	var err error
	if h.pool, err = pgxpool.New(context.Background(), pg.URL(h.name)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.pool.Close)
	if h.sql, err = sql.Open("pgx", pg.URL(h.name)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.sql.Close() })
	pg.ExecIn(t, h.name, forzeTable)
	return h
}

// db is the pool.
func (h *house) db() DB {
	if h.way == bySQL {
		return SQL(h.sql)
	}
	return Pgx(h.pool)
}

// work is a transaction of the application.
type work struct {
	t                testing.TB
	db               DB
	commit, rollback func()
	exec             func(sql string) error
}

func (h *house) begin() *work {
	h.t.Helper()
	ctx := context.Background()
	check := func(what string, err error) {
		if err != nil {
			h.t.Fatalf("%s: %v", what, err)
		}
	}
	if h.way == bySQL {
		tx, err := h.sql.BeginTx(ctx, nil)
		check("begin", err)
		h.t.Cleanup(func() { _ = tx.Rollback() })
		return &work{
			h.t, SQL(tx), func() { check("commit", tx.Commit()) }, func() { check("rollback", tx.Rollback()) },
			func(sql string) error { _, err := tx.ExecContext(ctx, sql); return err },
		}
	}
	tx, err := h.pool.Begin(ctx)
	check("begin", err)
	h.t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return &work{
		h.t, Pgx(tx), func() { check("commit", tx.Commit(ctx)) }, func() { check("rollback", tx.Rollback(ctx)) },
		func(sql string) error { _, err := tx.Exec(ctx, sql); return err },
	}
}

// open opens the outbox as a new process would; its wall clock is at.
func (h *house) open(o Options, at ...func() time.Time) *Outbox {
	h.t.Helper()
	if len(at) > 0 {
		o.Now = at[0]
	}
	x, err := Open(context.Background(), h.db(), o)
	if err != nil {
		h.t.Fatal(err)
	}
	return x
}

// flush is one unit of work that commits.
func (h *house) flush(x *Outbox, events ...stage.Event) Result {
	h.t.Helper()
	b := h.stage(x.Buffer(), events...)
	w := h.begin()
	res, err := x.Flush(context.Background(), w.db, b)
	if err != nil {
		h.t.Fatal(err)
	}
	w.commit()
	return res
}

func (h *house) stage(b *stage.Buffer, events ...stage.Event) *stage.Buffer {
	h.t.Helper()
	for _, e := range events {
		if _, err := b.Stage(context.Background(), e); err != nil {
			h.t.Fatal(err)
		}
	}
	return b
}

// some are n events.
func some(n int) (all []stage.Event) {
	for i := range n {
		all = append(all, stage.Event{Route: "orders", Type: "OrderPlaced", Key: fmt.Sprint("order-", i%3), Payload: map[string]int{"n": i}})
	}
	return all
}

func (h *house) exec(sql string) { h.t.Helper(); h.pg.ExecIn(h.t, h.name, sql) }

// ask asks for one value as text, on a connection that is nobody's.
func (h *house) ask(sql string, args ...any) string {
	h.t.Helper()
	var s *string
	if err := h.pool.QueryRow(context.Background(), sql, args...).Scan(&s); err != nil {
		h.t.Fatalf("%s: %v", sql, err)
	}
	return deref(s)
}

// wants holds an answer against what it ought to be.
func (h *house) wants(want, sql string, args ...any) {
	h.t.Helper()
	if got := h.ask(sql, args...); got != want {
		h.t.Errorf("%s: %s, want %s", sql, got, want)
	}
}

// marks are those of the checkpoint: default=5 other=7.
const marks = `select coalesce(string_agg(node_key || '=' || hlc, ' ' order by node_key), '') from hlc_checkpoint`

func (h *house) wantsMark(s hlc.Stamp) {
	h.t.Helper()
	want := ""
	if s != 0 {
		want = "default=" + packed(s)
	}
	h.wants(want, marks)
}

// rows are all of the outbox in the order of insertion, as Postgres makes JSON of them.
func (h *house) rows() (all []map[string]any) {
	h.t.Helper()
	rows, err := h.pool.Query(context.Background(), `select to_jsonb(o) from outbox o order by ctid`)
	if err != nil {
		h.t.Fatal(err)
	}
	texts, err := pgx.CollectRows(rows, pgx.RowTo[json.RawMessage])
	if err != nil {
		h.t.Fatal(err)
	}
	for _, text := range texts {
		var r map[string]any
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.UseNumber() // a float has no room for a stamp
		if err := dec.Decode(&r); err != nil {
			h.t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// show writes a row with its columns in alphabetical order, NULLs left out.
func show(r map[string]any) string {
	var parts []string
	for _, c := range slices.Sorted(maps.Keys(r)) {
		if r[c] != nil {
			v, _ := json.Marshal(r[c])
			parts = append(parts, c+"="+string(v))
		}
	}
	return strings.Join(parts, " ")
}

// eventually waits for what another session does.
func (h *house) eventually(what string, ok func() bool) {
	h.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			h.t.Fatalf("%s: not within 30 s", what)
		}
	}
}

// blocked waits until n sessions of the database wait for a lock.
func (h *house) blocked(n int) {
	h.t.Helper()
	h.eventually(fmt.Sprintf("%d sessions that wait", n), func() bool {
		return h.ask(`select count(*)::text from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`) == fmt.Sprint(n)
	})
}

func id(n int) uuid.UUID { return uuid.MustParse(fmt.Sprintf("0198f3a0-0000-7000-8000-%012x", n)) }

func frozen(ms int64) func() time.Time { return func() time.Time { return time.UnixMilli(ms) } }
