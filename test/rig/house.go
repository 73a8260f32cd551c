package rig

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/test/mongoserver"
	"github.com/walrelay/walrelay/test/pgserver"
)

// House is one outbox database with the configuration of a relay for it. The
// relay's slot goes with the test.
type House struct {
	PG       *pgserver.Server
	Database string
	Brokers  []string
	// Topic is where "*" is routed to; the test makes it.
	Topic string
	// Slot and Publication are those of the only source, orders.
	Slot, Publication string
	// Preset of the outbox table public.outbox (forze).
	Preset string
	// Postgres, Source, Kafka, Routes and Top are further lines of the configuration
	// in their sections, indented from column 0. Unless Source names after_publish, rows
	// are kept as they are; unless Kafka names on_poison, a poisoned event stops the source:
	// most tests are about the log alone.
	Postgres, Source, Kafka, Routes, Top string
	// URL replaces the connection string.
	URL string
	// Mongo is the replica set of a house that NewMongoHouse made; Stream holds further lines
	// of its section mongo. PG, Slot, Publication and Postgres mean nothing then.
	Mongo  *mongoserver.Server
	Stream string
	// Second is another outbox database that the same relay reads, as source billing: its
	// database, slot, publication, preset, URL, Postgres and Source count.
	Second *House
	// Program replaces the relay's program; Env holds variables of its environment that
	// are added to the test's.
	Program string
	Env     []string
}

// NewHouse makes a database and the names for it, and creates nothing else:
// Init does.
func NewHouse(t testing.TB, pg *pgserver.Server, brokers []string, topic string) *House {
	t.Helper()
	db := pg.NewDatabase(t)
	name := db
	if len(name) > 50 {
		name = name[:30] + name[len(name)-20:]
	}
	h := &House{PG: pg, Database: db, Brokers: brokers, Topic: topic, Slot: "wr_" + name, Publication: "wr_" + name, Preset: "forze"}
	t.Cleanup(func() { h.dropSlot(t) })
	return h
}

// dropSlot leaves room for the other tests that share the server.
func (h *House) dropSlot(t testing.TB) {
	if !h.PG.Running() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, h.PG.URL(h.Database))
	if err != nil {
		return
	}
	defer func() { _ = conn.Close(ctx) }()
	for range 100 {
		if _, err = conn.Exec(ctx, `select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = $1`, h.Slot); err == nil {
			return
		}
		_, _ = conn.Exec(ctx, `select pg_sleep(0.1)`)
	}
	t.Logf("slot %s stays: %v", h.Slot, err)
}

// Config is the relay's configuration file.
func (h *House) Config() string {
	var b strings.Builder
	b.WriteString("name: test\nsources:\n")
	h.source(&b, "orders")
	if h.Second != nil {
		h.Second.source(&b, "billing")
	}
	b.WriteString("kafka:\n  brokers: [" + strings.Join(h.Brokers, ", ") + "]\n")
	if !strings.Contains(h.Kafka, "on_poison:") {
		b.WriteString("  on_poison: stop\n")
	}
	indent(&b, h.Kafka, "  ")
	b.WriteString("routes:\n")
	indent(&b, h.Routes, "  ")
	if !strings.Contains(h.Routes, `"*"`) {
		fmt.Fprintf(&b, "  \"*\": {topic: %s}\n", h.Topic)
	}
	if !strings.Contains(h.Top, "http:") {
		b.WriteString("http: {listen: \"127.0.0.1:0\"}\n")
	}
	indent(&b, h.Top, "")
	return b.String()
}

func (h *House) source(b *strings.Builder, name string) {
	if h.Mongo != nil {
		h.mongoSection(b, name)
	} else {
		h.postgresSection(b, name)
	}
	if !strings.Contains(h.Source, "schema:") {
		fmt.Fprintf(b, "    schema: %s\n", h.Preset)
	}
	if !strings.Contains(h.Source, "after_publish:") {
		b.WriteString("    after_publish: keep\n")
	}
	indent(b, h.Source, "    ")
}

func (h *House) postgresSection(b *strings.Builder, name string) {
	url := h.URL
	if url == "" {
		url = h.PG.URL(h.Database)
	}
	fmt.Fprintf(b, "  %s:\n    postgres:\n      url: %q\n      slot: %s\n      publication: %q\n", name, url, h.Slot, h.Publication)
	if !strings.Contains(h.Postgres, "tables:") {
		b.WriteString("      tables: [public.outbox]\n")
	}
	if !strings.Contains(h.Postgres, "check_interval:") {
		b.WriteString("      check_interval: 1s\n")
	}
	indent(b, h.Postgres, "      ")
}

func indent(b *strings.Builder, text, by string) {
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			b.WriteString(by + strings.TrimRight(line, "\n") + "\n")
		}
	}
}

// Init runs walrelay init: the table, publication, slot and bookkeeping.
func (h *House) Init(t testing.TB) {
	t.Helper()
	if out, code := h.Command(t, "init"); code != 0 {
		t.Fatalf("walrelay init exited %d:\n%s", code, out)
	}
}

// Exec runs one statement in the house's database.
func (h *House) Exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	h.PG.ExecIn(t, h.Database, sql, args...)
}

// Insert writes events with the given keys into the forze outbox, one
// transaction; the payload holds the number of the event in it.
func (h *House) Insert(t testing.TB, route string, keys ...string) {
	t.Helper()
	h.Exec(t, `insert into public.outbox (id, event_id, outbox_route, event_type, status, occurred_at, created_at, payload, ordering_key)
		select gen_random_uuid(), gen_random_uuid(), $1, 'Tested', 'pending', now(), now(), jsonb_build_object('n', n, 'key', k), k
		from unnest($2::text[]) with ordinality as u(k, n) order by n`, route, keys)
}

// Slot facts as the server has them.
type Slot struct {
	Confirmed, Restart string
	Active             bool
	PID                int
	WALStatus          string
	Retained           int64
}

// ReadSlot reads the slot.
func (h *House) ReadSlot(t testing.TB) Slot {
	t.Helper()
	// A connection for each look: a test looks often, and the server may restart.
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, h.PG.URL(h.Database))
	if err != nil {
		t.Fatalf("reading slot %s: %v", h.Slot, err)
	}
	defer func() { _ = conn.Close(ctx) }()
	var s Slot
	err = conn.QueryRow(ctx, `
		select coalesce(confirmed_flush_lsn::text, ''), coalesce(restart_lsn::text, ''), active, coalesce(active_pid, 0), coalesce(wal_status, ''),
		       coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn), 0)::bigint
		from pg_replication_slots where slot_name = $1`, h.Slot).
		Scan(&s.Confirmed, &s.Restart, &s.Active, &s.PID, &s.WALStatus, &s.Retained)
	if err != nil {
		t.Fatalf("reading slot %s: %v", h.Slot, err)
	}
	return s
}
