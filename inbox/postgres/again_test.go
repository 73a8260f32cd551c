package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/walrelay/walrelay/inbox"
	"github.com/walrelay/walrelay/inbox/postgres"
	"github.com/walrelay/walrelay/test/pgserver"
)

func TestSerializationFailureRunsTheWholeTransactionAgain(t *testing.T) {
	onEach(t, func(t *testing.T, pg *pgserver.Server) {
		h := newHouse(t, pg)
		in := h.inbox(inbox.Options{}, postgres.Options{Isolation: pgx.RepeatableRead})
		var executions []uuid.UUID
		got, err := in.Process(t.Context(), h.pool, published(1, 1), func(ctx context.Context, tx pgx.Tx, m inbox.Message) error {
			executions = append(executions, m.Identity.Execution)
			if len(executions) <= 2 {
				h.exec(`update accounts set money = money + 100 where id = 1`) // somebody else, after our snapshot
			}
			_, err := tx.Exec(ctx, `update accounts set money = money + 1 where id = 1`)
			return errors.Join(err, pay(ctx, tx, m))
		})
		is(t, "third run", inbox.Handled, got, err)
		if len(executions) != 3 || executions[0] != executions[2] {
			t.Errorf("executions %v, want the same three times", executions)
		}
		if n := h.count(`select money from accounts where id = 1`); n != 201 {
			t.Errorf("the account holds %d, want 201", n)
		}
		h.holds(1, 1)
	})
}

func TestTransactionIsRunAgainABoundedNumberOfTimesAndKeepsItsCause(t *testing.T) {
	onEach(t, func(t *testing.T, pg *pgserver.Server) {
		h := newHouse(t, pg)
		in := h.inbox(inbox.Options{}, postgres.Options{Runs: 3, Isolation: pgx.RepeatableRead})
		runs := 0
		got, err := in.Process(t.Context(), h.pool, published(1, 1), func(ctx context.Context, tx pgx.Tx, _ inbox.Message) error {
			runs++
			h.exec(`update accounts set money = money + 1 where id = 1`)
			_, err := tx.Exec(ctx, `update accounts set money = 0 where id = 1`)
			return fmt.Errorf("paying: %w", err)
		})
		cause, ok := errors.AsType[*pgconn.PgError](err)
		if got != inbox.Unsettled || runs != 3 || !ok || cause.Code != "40001" {
			t.Errorf("%s after %d runs: %v", got, runs, err)
		}
		h.holds(0, 0)
	})
}

func TestOtherErrorsOfTheDatabaseAreNotRunAgain(t *testing.T) {
	onEach(t, func(t *testing.T, pg *pgserver.Server) {
		h := newHouse(t, pg)
		in := h.inbox(inbox.Options{}, postgres.Options{})
		runs := 0
		_, err := in.Process(t.Context(), h.pool, published(1, 1), func(ctx context.Context, tx pgx.Tx, _ inbox.Message) error {
			runs++
			_, err := tx.Exec(ctx, `insert into accounts values (1, 0)`)
			return err
		})
		if cause, ok := errors.AsType[*pgconn.PgError](err); runs != 1 || !ok || cause.Code != "23505" {
			t.Errorf("%d runs: %v", runs, err)
		}
	})
}

// Two handlers take two rows in opposite order: Postgres kills one of them, which
// is then run again.
func TestDeadlockedHandlersBothSucceed(t *testing.T) {
	onEach(t, func(t *testing.T, pg *pgserver.Server) {
		h := newHouse(t, pg)
		in := h.inbox(inbox.Options{}, postgres.Options{})
		var first sync.WaitGroup // both have their first row
		first.Add(2)
		var wg sync.WaitGroup
		runs := make([]int, 2)
		for i := range 2 {
			wg.Go(func() {
				got, err := in.Process(t.Context(), h.pool, published(i, int64(i)), func(ctx context.Context, tx pgx.Tx, m inbox.Message) error {
					runs[i]++
					_, err := tx.Exec(ctx, `update accounts set money = money + 1 where id = $1`, 1+i)
					if runs[i] == 1 {
						first.Done()
						first.Wait()
					}
					if err == nil {
						_, err = tx.Exec(ctx, `update accounts set money = money + 1 where id = $1`, 2-i)
					}
					if err == nil {
						err = pay(ctx, tx, m)
					}
					return err
				})
				is(t, fmt.Sprint("record ", i), inbox.Handled, got, err)
			})
		}
		wg.Wait()
		if runs[0]+runs[1] < 3 {
			t.Errorf("runs %v: there was no deadlock", runs)
		}
		if n := h.count(`select money from accounts where id = 1`); n != 2 {
			t.Errorf("the account holds %d, want 2", n)
		}
		h.holds(2, 2)
	})
}
