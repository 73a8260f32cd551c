package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Retention says which marks are forgotten.
type Retention struct {
	// Keep is for how long marks stay after the record was handled. It must be longer
	// than the topic keeps records and than an offset may ever be set back; 7 days is
	// usual.
	Keep time.Duration
	// Batch is how many marks one statement deletes at most; 1000 when 0.
	Batch int
	// Batches is how many statements one call runs at most; 100 when 0.
	Batches int
}

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

func (in *Inbox) forget(r Retention, exec func(args ...any) (int64, error)) (deleted int64, err error) {
	if r.Keep <= 0 || r.Batch < 0 || r.Batches < 0 {
		return 0, fmt.Errorf("retention %+v: Keep must be positive, the others not negative", r)
	}
	if r.Batch == 0 {
		r.Batch = 1000
	}
	if r.Batches == 0 {
		r.Batches = 100
	}
	for range r.Batches {
		n, err := exec(in.Route(), r.Keep.Microseconds(), r.Batch)
		deleted += n
		if err != nil {
			return deleted, fmt.Errorf("forgetting marks of route %s: %w", in.Route(), err)
		}
		if n < int64(r.Batch) {
			break
		}
	}
	return deleted, nil
}
