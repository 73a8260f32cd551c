package slot

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// The tables of walrelay's own schema.
const (
	bookSource = "source" // a marker for each source
	bookLease  = "lease"  // who holds which part of a source's keys
	bookParked = "parked" // events put aside, and those behind them
)

// bookNames are in the order in which init makes them.
var bookNames = []string{bookSource, bookLease, bookParked}

// book is one of the tables, as SQL names it.
func (o *Options) book(name string) Table { return Table{Schema: o.Bookkeeping, Name: name} }

// bookDDL makes one of the tables. Older versions made fewer of them: each is
// looked for by itself.
func bookDDL(o Options, name string) []string {
	t := o.book(name).SQL()
	ddl := []string{"CREATE SCHEMA IF NOT EXISTS " + QuoteIdent(o.Bookkeeping)}
	switch name {
	case bookLease:
		return append(ddl, "CREATE TABLE IF NOT EXISTS "+t+` (
	owner text NOT NULL,
	unit text NOT NULL,
	holder text NOT NULL,
	acquired_at timestamptz NOT NULL,
	expires_at timestamptz NOT NULL,
	PRIMARY KEY (owner, unit)
)`)
	case bookParked:
		return append(ddl, "CREATE TABLE IF NOT EXISTS "+t+` (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	owner text NOT NULL,
	state text NOT NULL CHECK (state IN ('parked', 'behind', 'retrying')),
	relation text NOT NULL DEFAULT '',
	row_id text NOT NULL DEFAULT '',
	event_id text NOT NULL,
	route text NOT NULL,
	key text NOT NULL,
	topic text NOT NULL,
	commit_lsn pg_catalog.pg_lsn,
	ordinal bigint NOT NULL DEFAULT 0,
	reason text NOT NULL,
	error text NOT NULL,
	record jsonb,
	value bytea,
	record_key bytea,
	parked_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp()
)`,
			"CREATE UNIQUE INDEX IF NOT EXISTS "+QuoteIdent(name+"_event")+" ON "+t+
				" (owner, relation, row_id, event_id, coalesce(commit_lsn, '0/0'::pg_catalog.pg_lsn), ordinal)",
			"CREATE INDEX IF NOT EXISTS "+QuoteIdent(name+"_key")+" ON "+t+" (owner, key)")
	default:
		return append(ddl, "CREATE TABLE IF NOT EXISTS "+t+` (
	name text PRIMARY KEY,
	system_identifier text NOT NULL,
	timeline int NOT NULL,
	slot text NOT NULL,
	confirmed_lsn pg_catalog.pg_lsn NOT NULL,
	phase text NOT NULL,
	publication text NOT NULL DEFAULT '',
	updated_at timestamptz NOT NULL
)`)
	}
}

// bookInfo is what the catalog says of one of the tables.
type bookInfo struct{ exists, writable bool }

// books are the tables that must be there for what the source does.
func (o *Options) books() []string {
	if o.polls() {
		return []string{bookLease, bookParked}
	}
	return bookNames
}

func (v *inventory) readBookkeeping(ctx context.Context, conn *pgx.Conn, o Options) error {
	v.books = map[string]bookInfo{}
	if !o.keepsBooks() {
		return nil
	}
	rows, err := conn.Query(ctx, `
		select c.relname::text,
		       pg_catalog.has_schema_privilege(n.oid, 'USAGE') and pg_catalog.has_table_privilege(c.oid, 'SELECT')
		       and pg_catalog.has_table_privilege(c.oid, 'INSERT') and pg_catalog.has_table_privilege(c.oid, 'UPDATE')
		       and (c.relname = 'source' or pg_catalog.has_table_privilege(c.oid, 'DELETE'))
		  from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
		 where n.nspname = $1 and c.relname = any($2::text[]) and c.relkind = 'r'`, o.Bookkeeping, bookNames)
	if err != nil {
		return err
	}
	var name string
	b := bookInfo{exists: true}
	if _, err = pgx.ForEachRow(rows, []any{&name, &b.writable}, func() error {
		v.books[name] = b
		return nil
	}); err != nil {
		return err
	}
	return conn.QueryRow(ctx, `
		select exists (select from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
		                where n.nspname = $1 and p.proname = $2 and p.pronargs = 0)`, o.Bookkeeping, notifier).Scan(&v.notifies)
}
