package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/walrelay/walrelay/inbox"
	"github.com/walrelay/walrelay/inbox/postgres"
	"github.com/walrelay/walrelay/test/pgserver"
)

var errNoMoney = errors.New("no money")

func payThenFail(ctx context.Context, tx pgx.Tx, m inbox.Message) error {
	return errors.Join(pay(ctx, tx, m), errNoMoney)
}

func TestFailedHandlerTakesTheMarkBackAndTheRecordIsHandledAgain(t *testing.T) {
	onEach(t, func(t *testing.T, pg *pgserver.Server) {
		h := newHouse(t, pg)
		in := h.inbox(inbox.Options{}, postgres.Options{})
		got, err := in.Process(t.Context(), h.pool, published(1, 1), payThenFail)
		if got != inbox.Unsettled || !errors.Is(err, errNoMoney) || !strings.Contains(err.Error(), eventID(1)) {
			t.Errorf("%s, %v", got, err)
		}
		h.holds(0, 0)
		got, err = in.Process(t.Context(), h.pool, published(1, 1), pay)
		is(t, "again", inbox.Handled, got, err)
		h.holds(1, 1)
	})
}

func TestPanickingHandlerLeavesNoMarkAndNoOpenTransaction(t *testing.T) {
	onEach(t, func(t *testing.T, pg *pgserver.Server) {
		h := newHouse(t, pg)
		in := h.inbox(inbox.Options{}, postgres.Options{})
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed")
				}
			}()
			_, _ = in.Process(t.Context(), h.pool, published(1, 1), func(context.Context, pgx.Tx, inbox.Message) error { panic("no memory") })
		}()
		h.holds(0, 0)
		if n := h.pool.Stat().AcquiredConns(); n != 0 {
			t.Errorf("%d connections are still taken", n)
		}
	})
}

// A caller that ignores the error of Handle and commits must not keep a mark
// without its handling: the record would be lost.
func TestMarkOfAFailedHandlerCannotBeCommitted(t *testing.T) {
	onEach(t, func(t *testing.T, pg *pgserver.Server) {
		h := newHouse(t, pg)
		in := h.inbox(inbox.Options{}, postgres.Options{})
		tx, err := h.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := in.Handle(t.Context(), tx, published(1, 1), payThenFail); !errors.Is(err, errNoMoney) {
			t.Error(err)
		}
		if err := tx.Commit(t.Context()); !errors.Is(err, pgx.ErrTxClosed) {
			t.Errorf("the commit answers %v", err)
		}
		h.holds(0, 0)
	})
}

func TestSeveralRecordsShareATransactionAndASavepointLosesOne(t *testing.T) {
	onEach(t, func(t *testing.T, pg *pgserver.Server) {
		h := newHouse(t, pg)
		in := h.inbox(inbox.Options{}, postgres.Options{})
		tx, err := h.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for n, handler := range []postgres.Handler{pay, payThenFail, pay, pay} {
			savepoint, err := tx.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			_, err = in.Handle(t.Context(), savepoint, published(min(n, 2), int64(n)), handler)
			if n == 1 {
				if !errors.Is(err, errNoMoney) {
					t.Errorf("record 1: %v", err)
				}
				continue
			}
			if err := errors.Join(err, savepoint.Commit(t.Context())); err != nil {
				t.Fatal(err)
			}
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.holds(2, 2) // records 0 and 2; 1 failed, 3 is 2 again
	})
}

func TestHandlerCannotEndTheTransactionOfItsMark(t *testing.T) {
	onEach(t, func(t *testing.T, pg *pgserver.Server) {
		h := newHouse(t, pg)
		in := h.inbox(inbox.Options{}, postgres.Options{})
		got, err := in.Process(t.Context(), h.pool, published(1, 1), func(ctx context.Context, tx pgx.Tx, m inbox.Message) error {
			if err := tx.Commit(ctx); !errors.Is(err, postgres.ErrNotYours) {
				t.Errorf("commit: %v", err)
			}
			if err := tx.Rollback(ctx); !errors.Is(err, postgres.ErrNotYours) {
				t.Errorf("rollback: %v", err)
			}
			savepoint, err := tx.Begin(ctx)
			if err != nil {
				return err
			}
			return errors.Join(pay(ctx, savepoint, m), savepoint.Rollback(ctx), pay(ctx, tx, m))
		})
		is(t, "savepoint", inbox.Handled, got, err)
		h.holds(1, 1)
	})
}

// The handler swallowed an error that had aborted the transaction.
func TestAbortedTransactionIsNoSuccess(t *testing.T) {
	onEach(t, func(t *testing.T, pg *pgserver.Server) {
		h := newHouse(t, pg)
		in := h.inbox(inbox.Options{}, postgres.Options{})
		got, err := in.Process(t.Context(), h.pool, published(1, 1), func(ctx context.Context, tx pgx.Tx, _ inbox.Message) error {
			_, _ = tx.Exec(ctx, `select 1 / 0`)
			return nil
		})
		if got != inbox.Unsettled || !errors.Is(err, pgx.ErrTxCommitRollback) {
			t.Errorf("%s, %v", got, err)
		}
		h.holds(0, 0)
	})
}

func TestTableWithoutItsKeyHandlesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, pg *pgserver.Server) {
		h := newHouse(t, pg)
		h.exec(`alter table inbox drop constraint inbox_pkey`)
		in := h.inbox(inbox.Options{}, postgres.Options{})
		_, err := in.Process(t.Context(), h.pool, published(1, 1), pay)
		if refused, ok := errors.AsType[*pgconn.PgError](err); !ok || refused.Code != "42P10" {
			t.Errorf("%v", err)
		}
		h.holds(0, 0)
	})
}

func TestCancelledRecordIsNeitherMarkedNorHandled(t *testing.T) {
	onEach(t, func(t *testing.T, pg *pgserver.Server) {
		h := newHouse(t, pg)
		in := h.inbox(inbox.Options{}, postgres.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		got, err := in.Process(ctx, h.pool, published(1, 1), func(ctx context.Context, tx pgx.Tx, m inbox.Message) error {
			defer cancel()
			return pay(ctx, tx, m)
		})
		if got != inbox.Unsettled || !errors.Is(err, context.Canceled) {
			t.Errorf("%s, %v", got, err)
		}
		h.holds(0, 0)
	})
}

// deaf commits and never hears the answer.
type deaf struct{ *pgxpool.Pool }

type deafTx struct{ pgx.Tx }

var errReset = errors.New("connection reset")

func (d deaf) BeginTx(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error) {
	tx, err := d.Pool.BeginTx(ctx, opts)
	return deafTx{tx}, err
}

func (d deafTx) Commit(ctx context.Context) error {
	return errors.Join(d.Tx.Commit(ctx), errReset)
}

func TestRecordWhoseCommitWasNotAnsweredIsSkippedWhenHandedInAgain(t *testing.T) {
	onEach(t, func(t *testing.T, pg *pgserver.Server) {
		h := newHouse(t, pg)
		in := h.inbox(inbox.Options{}, postgres.Options{})
		got, err := in.Process(t.Context(), deaf{h.pool}, published(1, 1), pay)
		if got != inbox.Unsettled || !errors.Is(err, errReset) {
			t.Errorf("%s, %v", got, err)
		}
		got, err = in.Process(t.Context(), h.pool, published(1, 1), pay)
		is(t, "again", inbox.Duplicate, got, err)
		h.holds(1, 1)
	})
}
