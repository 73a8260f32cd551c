package postgres

import (
	"context"
	"database/sql"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/inbox"
)

// Handler handles a message in a pgx transaction. What it writes through tx
// counts once. It must neither commit nor roll tx back (both answer ErrNotYours);
// tx.Begin gives it savepoints.
type Handler func(ctx context.Context, tx pgx.Tx, m inbox.Message) error

// SQLHandler is a Handler for database/sql. It must not end tx.
type SQLHandler func(ctx context.Context, tx *sql.Tx, m inbox.Message) error

// ErrNotYours answers a handler that wants to end the transaction of its mark.
var ErrNotYours = inbox.ErrNotYours

// Handle marks the record and runs the handler, both in the caller's transaction;
// the caller commits. After an error the transaction has been rolled back, with
// all that the caller did in it; to lose only this record's part, pass a savepoint
// (tx.Begin). The error of the handler is returned as it is.
//
// A serialization failure or a deadlock is an error like others here: the caller
// has to run its transaction again, see Process.
func (in *Inbox) Handle(ctx context.Context, tx pgx.Tx, r inbox.Record, h Handler) (inbox.Outcome, error) {
	ctx, m, err := in.Receive(ctx, r)
	if err != nil {
		return inbox.Unsettled, err
	}
	return in.handle(ctx, tx, m, h)
}

func (in *Inbox) handle(ctx context.Context, tx pgx.Tx, m inbox.Message, h Handler) (inbox.Outcome, error) {
	return inbox.Apply(ctx, in.Inbox, pgxStore{in.sql.mark}, tx, m, func(ctx context.Context, tx pgx.Tx, m inbox.Message) error {
		return h(ctx, lent{tx}, m)
	})
}

// HandleSQL is Handle for database/sql, with a driver that knows Postgres's $1.
func (in *Inbox) HandleSQL(ctx context.Context, tx *sql.Tx, r inbox.Record, h SQLHandler) (inbox.Outcome, error) {
	ctx, m, err := in.Receive(ctx, r)
	if err != nil {
		return inbox.Unsettled, err
	}
	return in.handleSQL(ctx, tx, m, h)
}

func (in *Inbox) handleSQL(ctx context.Context, tx *sql.Tx, m inbox.Message, h SQLHandler) (inbox.Outcome, error) {
	return inbox.Apply(ctx, in.Inbox, sqlStore{in.sql.mark}, tx, m, h)
}

// lent is a transaction in the hands of a handler.
type lent struct{ pgx.Tx }

func (lent) Commit(context.Context) error   { return ErrNotYours }
func (lent) Rollback(context.Context) error { return ErrNotYours }

type pgxStore struct{ mark string }

func (s pgxStore) Mark(ctx context.Context, tx pgx.Tx, route, id string) (bool, error) {
	tag, err := tx.Exec(ctx, s.mark, route, id)
	return tag.RowsAffected() == 1, err
}

// rollbackWithin bounds a rollback, which is also due when the caller's context
// has ended.
const rollbackWithin = 5 * time.Second

func (pgxStore) Rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackWithin)
	defer cancel()
	// When it fails, the connection is gone, and the transaction with it.
	_ = tx.Rollback(ctx)
}

type sqlStore struct{ mark string }

func (s sqlStore) Mark(ctx context.Context, tx *sql.Tx, route, id string) (bool, error) {
	result, err := tx.ExecContext(ctx, s.mark, route, id)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n == 1, err
}

func (sqlStore) Rollback(_ context.Context, tx *sql.Tx) { _ = tx.Rollback() }
