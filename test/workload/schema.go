package workload

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Schema is the shape of the outbox, by the name of its preset.
type Schema string

// The schemas.
const (
	Forze    Schema = "forze"
	Debezium Schema = "debezium"
	Basic    Schema = "basic"
)

// CreateForze creates the forze relation with all its optional columns and both
// claim indexes. table may be qualified.
func CreateForze(t testing.TB, conn *pgx.Conn, table string) {
	t.Helper()
	create(t, conn, `create table %[1]s (
		id uuid primary key,
		event_id uuid not null,
		outbox_route text not null,
		event_type text not null,
		status text not null default 'pending' check (status in ('pending', 'processing', 'published', 'failed')),
		tenant_id uuid, execution_id uuid, correlation_id uuid, causation_id uuid,
		occurred_at timestamptz not null,
		created_at timestamptz not null default now(),
		payload jsonb not null,
		published_at timestamptz, processing_at timestamptz, available_at timestamptz,
		last_error text, ordering_key text, traceparent text,
		attempts int not null default 0,
		hlc bigint,
		unique (outbox_route, event_id));
		create index on %[1]s (outbox_route, status, available_at, created_at);
		create index on %[1]s (outbox_route, status, available_at, hlc, created_at, id)`, table)
}

// CreateDebezium creates an outbox as Debezium's EventRouter expects it.
func CreateDebezium(t testing.TB, conn *pgx.Conn, table string) {
	t.Helper()
	create(t, conn, `create table %s (
		id uuid primary key,
		aggregatetype varchar(255) not null,
		aggregateid varchar(255) not null,
		type varchar(255) not null,
		payload jsonb,
		timestamp timestamptz)`, table)
}

// CreateBasic creates the outbox of the basic preset.
func CreateBasic(t testing.TB, conn *pgx.Conn, table string) {
	t.Helper()
	create(t, conn, `create table %[1]s (
		seq bigint generated always as identity,
		id uuid primary key,
		aggregate_type text not null,
		aggregate_id text not null,
		event_type text not null,
		payload jsonb not null,
		created_at timestamptz not null default now(),
		published_at timestamptz);
		create index on %[1]s (seq) where published_at is null`, table)
}

func create(t testing.TB, conn *pgx.Conn, ddl, table string) {
	t.Helper()
	if _, err := conn.PgConn().Exec(context.Background(), fmt.Sprintf(ddl, table)).ReadAll(); err != nil {
		t.Fatalf("create outbox %s: %v", table, err)
	}
}

// columns are those that the writers fill, in the order of row.values.
func (s Schema) columns() []string {
	switch s {
	case Debezium:
		return []string{"id", "aggregatetype", "aggregateid", "type", "payload", "timestamp"}
	case Basic:
		return []string{"id", "aggregate_type", "aggregate_id", "event_type", "payload", "created_at"}
	default:
		return []string{"event_id", "outbox_route", "ordering_key", "event_type", "payload", "occurred_at", "id", "hlc"}
	}
}
