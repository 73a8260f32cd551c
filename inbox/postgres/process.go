package postgres

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/inbox"
)

// Beginner opens transactions: a *pgxpool.Pool or a *pgx.Conn.
type Beginner interface {
	BeginTx(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error)
}

// Process handles one record in a transaction of its own and commits it. When it
// returns without an error, the record is done: handled now or before.
//
// A transaction that Postgres gave up for a serialization failure (40001) or a
// deadlock (40P01) is run again, at most Options.Runs times in all, with a pause of
// 5 ms to 1 s in between; the handler then runs again too. Every other error ends
// it. The cause stays in the error, for errors.Is and errors.As.
//
// After an error of the commit (the connection broke), the transaction may have
// been committed all the same. Hand the record in again: its mark knows.
func (in *Inbox) Process(ctx context.Context, db Beginner, r inbox.Record, h Handler) (inbox.Outcome, error) {
	return process(ctx, in, r, func(ctx context.Context, m inbox.Message) (inbox.Outcome, error) {
		tx, err := db.BeginTx(ctx, pgx.TxOptions{IsoLevel: in.opts.Isolation})
		if err != nil {
			return inbox.Unsettled, fmt.Errorf("beginning: %w", err)
		}
		outcome, err := in.handle(ctx, tx, m, h)
		if err != nil {
			return inbox.Unsettled, err
		}
		if err := tx.Commit(ctx); err != nil {
			return inbox.Unsettled, fmt.Errorf("committing: %w", err)
		}
		return outcome, nil
	})
}

// ProcessSQL is Process for database/sql, with a driver that knows Postgres's $1
// and whose errors have a method SQLState (pgx's and lib/pq's do).
func (in *Inbox) ProcessSQL(ctx context.Context, db *sql.DB, r inbox.Record, h SQLHandler) (inbox.Outcome, error) {
	return process(ctx, in, r, func(ctx context.Context, m inbox.Message) (inbox.Outcome, error) {
		tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sqlIsolation[in.opts.Isolation]})
		if err != nil {
			return inbox.Unsettled, fmt.Errorf("beginning: %w", err)
		}
		outcome, err := in.handleSQL(ctx, tx, m, h)
		if err != nil {
			return inbox.Unsettled, err
		}
		if err := tx.Commit(); err != nil {
			return inbox.Unsettled, fmt.Errorf("committing: %w", err)
		}
		return outcome, nil
	})
}

func process(ctx context.Context, in *Inbox, r inbox.Record, run func(context.Context, inbox.Message) (inbox.Outcome, error)) (inbox.Outcome, error) {
	return inbox.Process(ctx, in.Inbox, r, inbox.Attempts{Most: in.opts.Runs, Victim: victim}, run)
}

var sqlIsolation = map[pgx.TxIsoLevel]sql.IsolationLevel{
	"":                  sql.LevelDefault,
	pgx.ReadUncommitted: sql.LevelReadUncommitted,
	pgx.ReadCommitted:   sql.LevelReadCommitted,
	pgx.RepeatableRead:  sql.LevelRepeatableRead,
	pgx.Serializable:    sql.LevelSerializable,
}
