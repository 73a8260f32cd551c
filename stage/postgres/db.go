package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/walrelay/walrelay/stage"
)

// ErrNoTransaction is what an operation wraps that needs a transaction and was
// given something else.
var ErrNoTransaction = stage.ErrNoTransaction

// DB is where a statement runs: a transaction, or where none is needed a
// connection or a pool. [Pgx] and [SQL] make one.
type DB interface {
	// rows runs a statement and hands each row of its result to scan.
	rows(ctx context.Context, statement string, args []any, scan func(into func(...any) error) error) error
	// transaction says why this is no transaction that is open; nil when it is one.
	transaction() error
}

// PgxQuerier is what pgx's transactions, connections and pools have in common.
type PgxQuerier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Pgx makes a DB of a pgx.Tx; of a *pgx.Conn, in or outside of a transaction; or
// of a *pgxpool.Pool.
func Pgx(db PgxQuerier) DB { return pgxDB{db} }

type pgxDB struct{ PgxQuerier }

func (d pgxDB) rows(ctx context.Context, statement string, args []any, scan func(func(...any) error) error) error {
	rows, err := d.Query(ctx, statement, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows.Scan); err != nil {
			return err
		}
	}
	rows.Close()
	return rows.Err()
}

// transaction asks the connection: it knows what the server said last, also where
// somebody wrote BEGIN by hand, or commits a pgx.Tx behind our back. What has no
// connection to ask passes if it can be committed.
func (d pgxDB) transaction() error {
	var conn *pgx.Conn
	switch db := d.PgxQuerier.(type) {
	case *pgx.Conn:
		conn = db
	case interface{ Conn() *pgx.Conn }:
		conn = db.Conn()
	case interface{ Commit(context.Context) error }:
		return nil
	default:
		return fmt.Errorf("a %T is no transaction: begin one, make the business change in it, and pass it here as postgres.Pgx(tx): %w", d.PgxQuerier, ErrNoTransaction)
	}
	if conn == nil || conn.PgConn().TxStatus() == 'I' {
		return fmt.Errorf("the %T is not inside of a transaction, or that is over: begin one, make the business change in it, and pass it here as postgres.Pgx(tx): %w", d.PgxQuerier, ErrNoTransaction)
	}
	return nil
}

// SQLQuerier is what database/sql's transactions, connections and pools have in common.
type SQLQuerier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// SQL makes a DB of a *sql.Tx or what embeds one, or of a *sql.DB. The driver must
// be one for Postgres; arguments are plain strings and integers, so any will do.
// A *sql.Conn counts as outside of a transaction, because one that was begun on it
// by hand cannot be seen.
func SQL(db SQLQuerier) DB { return sqlDB{db} }

type sqlDB struct{ SQLQuerier }

func (d sqlDB) rows(ctx context.Context, statement string, args []any, scan func(func(...any) error) error) error {
	rows, err := d.QueryContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := scan(rows.Scan); err != nil {
			return err
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

// transaction: a *sql.Tx that is over answers each statement with sql.ErrTxDone.
func (d sqlDB) transaction() error {
	if _, ok := d.SQLQuerier.(interface {
		Commit() error
		Rollback() error
	}); ok {
		return nil
	}
	return fmt.Errorf("a %T is no transaction: begin one, make the business change in it, and pass it here as postgres.SQL(tx): %w", d.SQLQuerier, ErrNoTransaction)
}

// sqlState is the server's code of an error, as either driver hands it out.
func sqlState(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	var e interface{ SQLState() string }
	if errors.As(err, &e) {
		return e.SQLState()
	}
	return ""
}
