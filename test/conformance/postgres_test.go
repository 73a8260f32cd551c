package conformance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/outbox/postgres"
	"github.com/walrelay/walrelay/slot"
	"github.com/walrelay/walrelay/test/pgserver"
)

// postgresYard is a database of the test's own, as "walrelay init" makes it.
type postgresYard struct {
	srv    *pgserver.Server
	name   string
	conn   *pgx.Conn
	schema event.Schema
}

func newPostgres(t *testing.T, v pgserver.Version) *postgresYard {
	t.Helper()
	srv := pgserver.Shared(t, v)
	b := &postgresYard{srv: srv, name: srv.NewDatabase(t), schema: forze(t)}
	b.conn = srv.Conn(t, b.name)
	o := slot.Options{
		Source: "orders", DSN: srv.URL(b.name), Schema: b.schema, Bookkeeping: "walrelay", Capture: slot.CapturePoll,
		WriteBack: slot.MarkRows, Tables: []slot.Table{{Schema: "public", Name: "outbox"}},
	}.WithDefaults()
	if _, err := slot.Apply(t.Context(), b.conn, o); err != nil {
		t.Fatal(err)
	}
	return b
}

func forze(t *testing.T) event.Schema {
	t.Helper()
	s, err := event.NewSchema(event.Forze, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (b *postgresYard) open(t *testing.T, o options) (outbox.Table, outbox.Leases, parking) {
	t.Helper()
	po := postgres.Options{
		Source: "orders", Owner: o.owner, Schema: b.schema, AfterPublish: postgres.MarkIt, Claim: postgres.ClaimRow, Bookkeeping: "walrelay",
		Tables: []postgres.Name{{Schema: "public", Name: "outbox"}}, ParkedBudget: o.budget,
		Connect: func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, b.srv.URL(b.name)) },
		Classify: func(err error, doing string) error {
			return slot.Classify(err, slot.Scene{Doing: doing, Settled: true})
		},
	}
	if po.Owner == "" {
		po.Owner = "shop/orders"
	}
	if o.lease {
		po.Claim = postgres.ClaimLease
	}
	if o.after != "" {
		po.AfterPublish = postgres.AfterPublish(o.after)
	}
	db := postgres.New(po)
	t.Cleanup(func() { _ = db.Close(context.Background()) })
	tables, err := db.Tables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return tables[0], db.Leases(), db.Parking()
}

func (b *postgresYard) relation() string          { return "public.outbox" }
func (b *postgresYard) id(n int) string           { return fmt.Sprintf("00000000-0000-0000-0000-%012d", n) }
func (b *postgresYard) at(n int) event.Position   { return event.AtLSN(event.LSN(n)) }
func (b *postgresYard) missingFirst(options) bool { return false }

func (b *postgresYard) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := b.conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func (b *postgresYard) insert(t *testing.T, from, to, keys int) {
	t.Helper()
	b.exec(t, `insert into public.outbox (id, event_id, outbox_route, event_type, occurred_at, payload, ordering_key, hlc, created_at)
 select ('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid, ('00000000-0000-0000-0001-' || lpad(n::text, 12, '0'))::uuid,
        'route' || n % 3, 'made', at, '{"a": 1}', 'k' || n % $3, n, at
   from generate_series($1::int, $2) n, lateral (select '2026-01-01 00:00+00'::timestamptz + n * interval '1 millisecond') x (at)`, from, to, keys)
}

func (b *postgresYard) set(t *testing.T, rows []int, fields map[string]any) {
	t.Helper()
	var sets []string
	args := []any{b.list(rows)}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value := fields[name]
		if m, ok := value.(moment); ok {
			sets = append(sets, fmt.Sprintf("%s = clock_timestamp() + interval '%d microseconds'", name, time.Duration(m).Microseconds()))
			continue
		}
		args = append(args, value)
		sets = append(sets, fmt.Sprintf("%s = $%d", name, len(args)))
	}
	b.exec(t, `update public.outbox set `+strings.Join(sets, ", ")+` where id = any ($1::text[]::uuid[])`, args...)
}

func (b *postgresYard) list(rows []int) []string {
	list := make([]string, len(rows))
	for i, n := range rows {
		list[i] = b.id(n)
	}
	return list
}

func (b *postgresYard) remove(t *testing.T, rows ...int) {
	t.Helper()
	b.exec(t, `delete from public.outbox where id = any ($1::text[]::uuid[])`, b.list(rows))
}

func (b *postgresYard) read(t *testing.T, n int) map[string]any {
	t.Helper()
	rows, err := b.conn.Query(t.Context(), `select status, attempts::int8 as attempts, published_at, processing_at, available_at, last_error, created_at
 from public.outbox where id = $1::uuid`, b.id(n))
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToMap)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

func (b *postgresYard) rows(t *testing.T) []int {
	t.Helper()
	rows, err := b.conn.Query(t.Context(), `select right(id::text, 12)::int8 from public.outbox order by id`)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func (b *postgresYard) now(t *testing.T) (at time.Time) {
	t.Helper()
	if err := b.conn.QueryRow(t.Context(), `select clock_timestamp()`).Scan(&at); err != nil {
		t.Fatal(err)
	}
	return at
}

func (b *postgresYard) age(t *testing.T, holder string, d time.Duration) {
	t.Helper()
	b.exec(t, `update walrelay.lease set acquired_at = acquired_at - $2::text::interval, expires_at = expires_at - $2::text::interval where holder = $1`, holder, d.String())
}
