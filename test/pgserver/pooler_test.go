package pgserver

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// through opens a session through the pooler in a mode that names no statements.
func (p *Pooler) through(t *testing.T, database string, mode pgx.QueryExecMode) *pgx.Conn {
	t.Helper()
	cfg, err := pgx.ParseConfig(p.URL(database))
	if err != nil {
		t.Fatal(err)
	}
	cfg.DefaultQueryExecMode = mode
	conn, err := pgx.ConnectConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func TestPoolerSharesTwoBackendsBetweenTransactions(t *testing.T) {
	t.Parallel()
	for _, v := range []Version{V15, V18} {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			s := Shared(t, v)
			database := s.NewDatabase(t)
			p := s.Pooler(t, nil)
			backends := map[int]bool{}
			for range 6 {
				backends[query[int](t, p.through(t, database, pgx.QueryExecModeExec), "select pg_backend_pid()")] = true
			}
			if len(backends) > 2 {
				t.Errorf("six sessions had %d backends, the pool has two", len(backends))
			}
		})
	}
}

// A session that names statements finds them gone, or already there: what C60 is about.
func TestPoolerForgetsNamedStatements(t *testing.T) {
	t.Parallel()
	s := Shared(t, V18)
	database := s.NewDatabase(t)
	p := s.Pooler(t, nil)
	a, b := p.through(t, database, pgx.QueryExecModeExec), p.through(t, database, pgx.QueryExecModeExec)
	ctx := t.Context()
	if _, err := a.Prepare(ctx, "named", "select 1"); err != nil {
		t.Fatal(err)
	}
	tx, err := b.Begin(ctx) // holds the backend where the statement is
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(ctx, "select 1"); err != nil {
		t.Fatal(err)
	}
	_, err = a.Exec(ctx, "named")
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "26000" {
		t.Errorf("another backend executed a statement that it had not prepared: %v", err)
	}
}

func TestPoolerRestartsOnItsPort(t *testing.T) {
	t.Parallel()
	s := Shared(t, V18)
	database := s.NewDatabase(t)
	p := s.Pooler(t, nil)
	conn := p.through(t, database, pgx.QueryExecModeExec)
	port := p.Port()
	p.Restart(t)
	if err := conn.Ping(t.Context()); err == nil {
		t.Error("a session survived the restart")
	}
	if p.Port() != port {
		t.Errorf("the port moved from %d to %d", port, p.Port())
	}
	if query[int](t, p.through(t, database, pgx.QueryExecModeExec), "select 1") != 1 {
		t.Error("nobody gets through")
	}
}

func TestPoolerRefusesReplication(t *testing.T) {
	t.Parallel()
	s := Shared(t, V18)
	database := s.NewDatabase(t)
	p := s.Pooler(t, nil)
	conn, err := pgx.Connect(t.Context(), p.URL(database)+"&replication=database")
	if err == nil {
		_ = conn.Close(t.Context())
		t.Error("a replication connection got through")
	}
}
