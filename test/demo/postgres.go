package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/test/pgserver"
)

// postgres is a Postgres 18 with logical replication.
type postgres struct {
	server *pgserver.Server
	url    string
}

func (*postgres) title() string   { return "Postgres 18" }
func (*postgres) fetches() string { return "Postgres (15 MB)" }
func (*postgres) undoes() bool    { return true }
func (db *postgres) env() string  { return "DATABASE_URL=" + db.url }

func (db *postgres) start() (string, error) {
	// fsync stays on: the latency shown is that of commits which are durable.
	pg, err := pgserver.Open(pgserver.Options{Version: pgserver.V18, Fsync: true})
	if err != nil {
		return "", fmt.Errorf("starting Postgres: %w", err)
	}
	db.server, db.url = pg, pg.URL("postgres")
	return fmt.Sprintf("%s on 127.0.0.1:%d, wal_level=logical", pg.Version().Release(), pg.Port()), nil
}

func (db *postgres) close() {
	if db.server != nil {
		db.server.Close()
	}
}

func (*postgres) config() string {
	return `    postgres:
      url: ${DATABASE_URL}
      tables: [public.outbox]
      messages: [outbox]        # and pg_logical_emit_message(true, 'outbox', …)
`
}

func (db *postgres) connect(ctx context.Context) (session, error) {
	conn, err := pgx.Connect(ctx, db.url)
	return pgSession{conn}, err
}

type pgSession struct{ conn *pgx.Conn }

func (s pgSession) begin(ctx context.Context) (transaction, error) {
	tx, err := s.conn.Begin(ctx)
	return pgTransaction{tx}, err
}

func (s pgSession) close(ctx context.Context) { _ = s.conn.Close(ctx) }

type pgTransaction struct{ tx pgx.Tx }

func (t pgTransaction) part(ctx context.Context) (transaction, error) {
	tx, err := t.tx.Begin(ctx)
	return pgTransaction{tx}, err
}

func (t pgTransaction) commit(ctx context.Context) error   { return t.tx.Commit(ctx) }
func (t pgTransaction) rollBack(ctx context.Context) error { return t.tx.Rollback(ctx) }

// emit writes one event: mostly a row, now and then a logical message.
func (t pgTransaction) emit(ctx context.Context, e written, kind, note string) error {
	var err error
	if e.aside {
		_, err = t.tx.Exec(ctx, `select pg_logical_emit_message(true, 'outbox', json_build_object(
			'event_id', $1::text, 'outbox_route', 'orders', 'event_type', $2::text, 'ordering_key', $3::text,
			'payload', jsonb_build_object('n', $4::int, 'written', $5::text || ', as a message'))::text)`, e.id, kind, e.key, e.n, note)
	} else {
		_, err = t.tx.Exec(ctx, `insert into outbox (id, event_id, outbox_route, event_type, ordering_key, occurred_at, payload)
			values ($1, $1, 'orders', $2, $3, now(), jsonb_build_object('n', $4::int, 'written', $5::text))`, e.id, kind, e.key, e.n, note)
	}
	return err
}
