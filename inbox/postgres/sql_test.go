package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/walrelay/walrelay/inbox"
	"github.com/walrelay/walrelay/inbox/postgres"
	"github.com/walrelay/walrelay/test/pgserver"
)

func (h *house) sql() *sql.DB {
	h.t.Helper()
	db, err := sql.Open("pgx", h.url)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = db.Close() })
	return db
}

func paySQL(ctx context.Context, tx *sql.Tx, m inbox.Message) error {
	_, err := tx.ExecContext(ctx, `insert into payments values ($1, $2)`, m.ID, m.Identity.Execution)
	return err
}

func TestDatabaseSQLHandlesOnceFailsWholeAndRunsAgain(t *testing.T) {
	onEach(t, func(t *testing.T, pg *pgserver.Server) {
		h := newHouse(t, pg)
		db := h.sql()
		in := h.inbox(inbox.Options{}, postgres.Options{Isolation: pgx.RepeatableRead})

		_, err := in.ProcessSQL(t.Context(), db, published(1, 1), func(ctx context.Context, tx *sql.Tx, m inbox.Message) error {
			return errors.Join(paySQL(ctx, tx, m), errNoMoney)
		})
		if !errors.Is(err, errNoMoney) {
			t.Error(err)
		}
		h.holds(0, 0)

		runs := 0
		got, err := in.ProcessSQL(t.Context(), db, published(1, 1), func(ctx context.Context, tx *sql.Tx, m inbox.Message) error {
			if runs++; runs == 1 {
				h.exec(`update accounts set money = money + 100 where id = 1`)
			}
			_, err := tx.ExecContext(ctx, `update accounts set money = money + 1 where id = 1`)
			return errors.Join(err, paySQL(ctx, tx, m))
		})
		is(t, "the serialization failure", inbox.Handled, got, err)
		got, err = in.ProcessSQL(t.Context(), db, published(1, 2), paySQL)
		is(t, "the second delivery", inbox.Duplicate, got, err)
		if runs != 2 {
			t.Errorf("%d runs, want 2", runs)
		}
		h.holds(1, 1)

		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := in.HandleSQL(t.Context(), tx, published(2, 3), func(context.Context, *sql.Tx, inbox.Message) error { return errNoMoney }); !errors.Is(err, errNoMoney) {
			t.Error(err)
		}
		if err := tx.Commit(); !errors.Is(err, sql.ErrTxDone) {
			t.Errorf("the commit answers %v", err)
		}
		h.holds(1, 1)

		h.exec(`update inbox set processed_at = now() - interval '8 days'`)
		if n, err := in.ForgetSQL(t.Context(), db, postgres.Retention{Keep: 7 * 24 * time.Hour}); n != 1 || err != nil {
			t.Errorf("forgot %d, %v", n, err)
		}
	})
}
