package forze

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

// soon bounds what ought to take well under a second, on a machine that runs
// many other things.
const soon = 60 * time.Second

// database is a forze application's database: its outbox as walrelay init makes it,
// and a session to write to it and look at it.
type database struct {
	t    *testing.T
	pg   *pgserver.Server
	name string

	mu     sync.Mutex
	conn   *pgx.Conn
	before map[string]row // rows as they were inserted
}

var templates struct {
	sync.Mutex
	made map[pgserver.Version]bool
}

const templateName = "forze_template"

// newDatabase makes a database that init has seen, as a copy of one.
func newDatabase(t *testing.T, v pgserver.Version) *database {
	t.Helper()
	pg := pgserver.Shared(t, v)
	templates.Lock()
	if templates.made == nil {
		templates.made = map[pgserver.Version]bool{}
	}
	if !templates.made[v] {
		pg.Exec(t, "create database "+templateName)
		h := &rig.House{
			PG: pg, Database: templateName, Brokers: []string{"127.0.0.1:9"}, Topic: "unused", Slot: "unused", Publication: "unused",
			Preset: "forze", Postgres: "capture: poll\n", Source: "after_publish: mark\n", Kafka: "on_poison: park\n",
		}
		h.Init(t)
		templates.made[v] = true
	}
	templates.Unlock()
	name := "forze_" + strings.ToLower(token())
	pg.Exec(t, "create database "+name+" template "+templateName)
	t.Cleanup(func() { pg.Exec(t, "drop database if exists "+name+" with (force)") })
	return openDatabase(t, pg, name)
}

func openDatabase(t *testing.T, pg *pgserver.Server, name string) *database {
	t.Helper()
	return &database{t: t, pg: pg, name: name, conn: pg.Conn(t, name), before: map[string]row{}}
}

// exec runs one statement and answers how many rows it touched.
func (d *database) exec(sql string, args ...any) int64 {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	tag, err := d.conn.Exec(context.Background(), sql, args...)
	if err != nil {
		d.t.Fatalf("%s: %v", sql, err)
	}
	return tag.RowsAffected()
}

// ask asks for one value as text; NULL, and no row, are empty.
func (d *database) ask(sql string, args ...any) string {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	var s *string
	if err := d.conn.QueryRow(context.Background(), sql, args...).Scan(&s); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		d.t.Fatalf("%s: %v", sql, err)
	}
	if s == nil {
		return ""
	}
	return *s
}

// now is the server's clock.
func (d *database) now() (at time.Time) {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.conn.QueryRow(context.Background(), "select clock_timestamp()").Scan(&at); err != nil {
		d.t.Fatal(err)
	}
	return at
}

// becomes waits until a question has that answer.
func (d *database) becomes(want, sql string, args ...any) {
	d.t.Helper()
	rig.Eventually(d.t, fmt.Sprintf("%q from %s", want, sql), soon, func() error {
		if got := d.ask(sql, args...); got != want {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
}

// states says how many rows are in each state: "failed 1, published 9".
const states = `select coalesce(string_agg(status || ' ' || n, ', ' order by status), '') from (select status, count(*) n from public.outbox group by 1) s`

// depth is forze's own probe: pending (parked retries among them), processing, failed.
func (d *database) depth() string {
	d.t.Helper()
	return d.ask(`select concat_ws(',', count(*) filter (where status = 'pending'), count(*) filter (where status = 'processing'),
		count(*) filter (where status = 'failed')) from public.outbox`)
}

// forzeClaim is the forze poller's claim of one route (outbox contract, 1.3): one
// statement of its own, which answers the ids.
const forzeClaim = `with picked as (
	select id from public.outbox where outbox_route = $1 and status = 'pending' and (available_at is null or available_at <= clock_timestamp())
	order by hlc nulls last, created_at, id limit $2 for update skip locked)
	update public.outbox o set status = 'processing', processing_at = clock_timestamp() from picked p where o.id = p.id returning o.id::text`

const (
	forzePublished = `update public.outbox set status = 'published', published_at = clock_timestamp(), last_error = null where id = any($1::uuid[]) and status = 'processing'`
	forzeRequeue   = `update public.outbox set status = 'pending', processing_at = null, published_at = null, last_error = null, attempts = 0, available_at = null
		where id = any($1::uuid[]) and status = 'failed'`
)

// column asks for the first column of all rows.
func column(conn *pgx.Conn, sql string, args ...any) ([]string, error) {
	rows, err := conn.Query(context.Background(), sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
