package postgres

import (
	"context"
	"database/sql"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/walrelay/walrelay/inbox"
)

// Retention says which marks are forgotten.
type Retention = inbox.Retention

// Execer runs statements outside a transaction: a *pgxpool.Pool or a *pgx.Conn.
type Execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// Forget deletes old marks of the route, oldest first, in statements of bounded
// size, and returns how many. Call it now and then: a call that ended at its bound
// left the rest for the next one. The age is measured by the database's clock.
func (in *Inbox) Forget(ctx context.Context, db Execer, r Retention) (int64, error) {
	return in.forget(r, func(args ...any) (int64, error) {
		tag, err := db.Exec(ctx, in.sql.forget, args...)
		return tag.RowsAffected(), err
	})
}

// ForgetSQL is Forget for database/sql.
func (in *Inbox) ForgetSQL(ctx context.Context, db *sql.DB, r Retention) (int64, error) {
	return in.forget(r, func(args ...any) (int64, error) {
		result, err := db.ExecContext(ctx, in.sql.forget, args...)
		if err != nil {
			return 0, err
		}
		return result.RowsAffected()
	})
}

func (in *Inbox) forget(r Retention, exec func(args ...any) (int64, error)) (int64, error) {
	return inbox.Forget(in.Inbox, r, func(keep time.Duration, most int) (int64, error) { return exec(in.Route(), keep.Microseconds(), most) })
}
