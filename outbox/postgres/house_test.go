package postgres

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/slot"
	"github.com/walrelay/walrelay/test/pgserver"
)

func TestMain(m *testing.M) { pgserver.Main(m) }

// versions are the oldest and the newest server.
var versions = []pgserver.Version{pgserver.V15, pgserver.V18}

func everyVersion(t *testing.T, f func(t *testing.T, srv *pgserver.Server)) {
	for _, v := range versions {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			f(t, pgserver.Shared(t, v))
		})
	}
}

const forzeTable = `create table public.outbox (
 id uuid primary key default gen_random_uuid(), outbox_route text not null, event_id uuid not null default gen_random_uuid(), event_type text not null default 'made',
 tenant_id uuid, execution_id uuid, correlation_id uuid, causation_id uuid, occurred_at timestamptz not null default now(),
 payload jsonb not null default '{"a": 1}', status text not null default 'pending' check (status in ('pending', 'processing', 'published', 'failed')),
 created_at timestamptz not null default now(), published_at timestamptz, processing_at timestamptz, available_at timestamptz,
 last_error text, attempts int not null default 0, ordering_key text, traceparent text, hlc bigint, unique (outbox_route, event_id));
create index on public.outbox (outbox_route, status, available_at, created_at);
create index stamps on public.outbox (outbox_route, status, available_at, hlc, created_at, id);`

const basicTable = `create table public.outbox (id uuid primary key default gen_random_uuid(), seq bigint generated always as identity,
 aggregate_type text not null, aggregate_id text not null, event_type text not null default 'made', payload jsonb not null default '{"a": 1}',
 created_at timestamptz not null default now(), published_at timestamptz);
create index on public.outbox (seq) where published_at is null;`

const debeziumTable = `create table public.outbox (id uuid primary key default gen_random_uuid(), aggregatetype varchar(255) not null,
 aggregateid varchar(255) not null, type varchar(255) not null default 'made', "timestamp" timestamptz not null default now(), payload jsonb default '{"a": 1}');`

// house is a database with one outbox table, and a connection to look at it.
type house struct {
	t    testing.TB
	srv  *pgserver.Server
	name string
	db   *Database
	conn *pgx.Conn
	*Table
}

// newHouse makes a database of its own. ddl makes public.outbox; change may alter the options.
func newHouse(t testing.TB, srv *pgserver.Server, preset event.Preset, ddl string, change func(o *Options)) *house {
	t.Helper()
	h := &house{t: t, srv: srv, name: srv.NewDatabase(t)}
	h.conn = srv.Conn(t, h.name)
	h.exec(ddl)
	h.Table, h.db = h.another(preset, change)
	return h
}

// another opens the table once more, as another process would.
func (h *house) another(preset event.Preset, change func(o *Options)) (*Table, *Database) {
	h.t.Helper()
	schema, err := event.NewSchema(preset, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	o := Options{
		Source: "orders", Owner: "shop/orders", Schema: schema, AfterPublish: MarkIt, Claim: ClaimRow, Bookkeeping: "walrelay",
		Tables: []Name{{"public", "outbox"}},
		// No settings come along, as through a pooler: what the SQL relies on it has to pin itself.
		Connect: func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, h.srv.URL(h.name)) },
		Classify: func(err error, doing string) error {
			return slot.Classify(err, slot.Scene{Doing: doing, Settled: true})
		},
	}
	if change != nil {
		change(&o)
	}
	db := New(o)
	h.t.Cleanup(func() { _ = db.Close(context.Background()) })
	tables, err := db.Tables(h.ctx())
	if err != nil {
		h.t.Fatal(err)
	}
	return tables[0], db
}

func (h *house) ctx() context.Context { return context.Background() }

func (h *house) exec(sql string, args ...any) {
	h.t.Helper()
	var err error
	if len(args) == 0 {
		_, err = h.conn.PgConn().Exec(h.ctx(), sql).ReadAll()
	} else {
		_, err = h.conn.Exec(h.ctx(), sql, args...)
	}
	if err != nil {
		h.t.Fatalf("%s: %v", sql, err)
	}
}

func (h *house) ask(sql string, args ...any) string {
	h.t.Helper()
	var s *string
	if err := h.conn.QueryRow(h.ctx(), sql, args...).Scan(&s); err != nil {
		h.t.Fatalf("%s: %v", sql, err)
	}
	if s == nil {
		return "NULL"
	}
	return *s
}

// id is the n-th row's id: in the order of n.
func id(n int) string { return fmt.Sprintf("00000000-0000-0000-0000-%012d", n) }

func ids(from, to int) (list []string) {
	for n := from; n <= to; n++ {
		list = append(list, id(n))
	}
	return list
}

// insert makes pending forze rows from..to: stamps ascend with n, keys are k<n modulo keys>.
func (h *house) insert(from, to, keys int) {
	h.t.Helper()
	h.exec(`insert into public.outbox (id, event_id, outbox_route, ordering_key, hlc, created_at)
 select ('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid, ('00000000-0000-0000-0001-' || lpad(n::text, 12, '0'))::uuid,
        'route' || n % 3, 'k' || n % $3, n, '2026-01-01 00:00+00'::timestamptz + n * interval '1 microsecond' from generate_series($1::int, $2) n`, from, to, keys)
}

func (h *house) claim(req outbox.Request) *outbox.Claim {
	h.t.Helper()
	c, err := h.Claim(h.ctx(), req)
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

func (h *house) settle(outcomes ...outbox.Outcome) []int {
	h.t.Helper()
	lost, err := h.Settle(h.ctx(), outcomes)
	if err != nil {
		h.t.Fatal(err)
	}
	return lost
}

func (h *house) mark(marks ...outbox.Mark) outbox.Marked {
	h.t.Helper()
	m, err := h.Mark(h.ctx(), marks)
	if err != nil {
		h.t.Fatal(err)
	}
	return m
}

func rowIDs(c *outbox.Claim) (list []string) {
	for i := range c.Rows {
		list = append(list, c.Rows[i].ID)
	}
	return list
}

// same compares lists.
func same(t testing.TB, what string, got, want []string) {
	t.Helper()
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// row is the row's state, all that a transition may touch; times by their presence.
func (h *house) row(n int) string {
	h.t.Helper()
	return h.ask(`select concat_ws(' ', status, 'attempts=' || attempts, case when published_at is not null then 'published_at' end,
 case when processing_at is not null then 'processing_at' end,
 case when available_at > clock_timestamp() then 'later' when available_at is not null then 'due' end, 'error=' || last_error)
 from public.outbox where id = $1::uuid`, id(n))
}

func (h *house) wantRow(n int, want string) {
	h.t.Helper()
	if got := h.row(n); got != want {
		h.t.Fatalf("row %d is %q, want %q", n, got, want)
	}
}
