package workload

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// doubt is a transaction whose commit was answered by an error, so that it may
// have been committed or not. Its own table, the ledger, knows: the outbox rows
// may have been deleted since, and a transaction id can be given out anew after
// a crash.
type doubt struct {
	xid  string
	mark uuid.UUID // stands in the ledger if the transaction was committed
	rows []row
}

func (l *Load) doubt(d doubt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unresolved = append(l.unresolved, d)
	l.stats.InDoubt++
}

// ledger is the name of a table beside the outbox with a row per committed transaction.
func (o Options) ledger() string { return o.Table + "_ledger" }

// createLedger makes the ledger where it is missing. The lock keeps two loads
// from making it at once.
func (l *Load) createLedger(ctx context.Context) error {
	w := &writer{load: l}
	defer w.hangUp()
	if err := w.connect(ctx); err != nil {
		return err
	}
	_, err := w.conn.PgConn().Exec(ctx, fmt.Sprintf(
		"select pg_advisory_xact_lock(hashtext('%[1]s')); create table if not exists %[1]s (mark uuid primary key)",
		l.opts.ledger())).ReadAll()
	return err
}

// resolve asks the server how the transactions in doubt ended.
func (l *Load) resolve() error {
	l.mu.Lock()
	doubts := l.unresolved
	l.unresolved = nil
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), finishWithin)
	defer cancel()
	w := &writer{load: l}
	defer w.hangUp()
	for len(doubts) > 0 {
		d := doubts[0]
		err := w.connect(ctx)
		var committed bool
		if err == nil {
			committed, err = w.outcome(ctx, d)
		}
		switch {
		case err != nil && passing(err) && ctx.Err() == nil:
			w.hangUp() // and ask again
			continue
		case err != nil:
			return err
		case committed:
			l.note(d.rows, func(s *Stats) { s.Transactions++ })
		default:
			l.note(nil, func(s *Stats) { s.Broken++ })
		}
		doubts = doubts[1:]
	}
	return nil
}

// outcome waits until the transaction has ended, since a server that has not
// noticed the lost connection may still be committing, and looks into the ledger.
func (w *writer) outcome(ctx context.Context, d doubt) (committed bool, err error) {
	retry := time.NewTicker(20 * time.Millisecond)
	defer retry.Stop()
	for {
		var status *string
		err := w.conn.QueryRow(ctx, "select pg_xact_status($1::text::xid8)", d.xid).Scan(&status)
		var refused *pgconn.PgError
		future := errors.As(err, &refused) && refused.Code == "22023" // a crash has left no trace of it
		if err != nil && !future {
			return false, err
		}
		if status == nil || *status != "in progress" {
			break
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			return false, fmt.Errorf("transaction %s is still in progress: %w", d.xid, context.Cause(ctx))
		}
	}
	sql := fmt.Sprintf("select exists (select from %s where mark = $1)", w.load.opts.ledger())
	err = w.conn.QueryRow(ctx, sql, d.mark).Scan(&committed)
	return committed, err
}

// passing reports whether the error comes from a server that is stopping, away,
// starting or short of something, as opposed to a statement that is wrong.
func passing(err error) bool {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		for _, class := range []string{"08", "40", "53", "57"} {
			if strings.HasPrefix(refused.Code, class) {
				return true
			}
		}
		return false
	}
	// A commit of a transaction that the server had already ended.
	return !errors.Is(err, pgx.ErrTxCommitRollback)
}
