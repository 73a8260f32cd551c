package mongo_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/inbox"
	"github.com/walrelay/walrelay/inbox/mongo"
)

func TestConflictRunsTheWholeTransactionAgain(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	in := h.inbox(inbox.Options{}, mongo.Options{})
	var executions []uuid.UUID
	got, err := in.Process(t.Context(), published(1, 1), func(ctx context.Context, m inbox.Message) error {
		executions = append(executions, m.Identity.Execution)
		if len(executions) <= 2 {
			if err := h.earn(t.Context(), 1, 100); err != nil { // somebody else, after our snapshot
				t.Error(err)
			}
		}
		if err := h.earn(ctx, 1, 1); err != nil {
			return fmt.Errorf("earning: %w", err)
		}
		return h.pay(ctx, m)
	})
	is(t, "third run", inbox.Handled, got, err)
	if len(executions) != 3 || executions[0] != executions[2] {
		t.Errorf("executions %v, want the same three times", executions)
	}
	if n := h.account(1); n != 201 {
		t.Errorf("the account holds %d, want 201", n)
	}
	h.holds(1, 1)
}

func TestTransactionIsRunAgainABoundedNumberOfTimesAndKeepsItsCause(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	in := h.inbox(inbox.Options{}, mongo.Options{Runs: 3})
	runs := 0
	got, err := in.Process(t.Context(), published(1, 1), func(ctx context.Context, _ inbox.Message) error {
		runs++
		if err := h.earn(t.Context(), 1, 1); err != nil {
			t.Error(err)
		}
		return fmt.Errorf("paying: %w", h.earn(ctx, 1, 1))
	})
	cause, ok := errors.AsType[driver.ServerError](err)
	if got != inbox.Unsettled || runs != 3 || !ok || !cause.HasErrorCode(112) {
		t.Errorf("%s after %d runs: %v", got, runs, err)
	}
	h.holds(0, 0)
}

func TestOtherErrorsOfTheDatabaseAreNotRunAgain(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	in := h.inbox(inbox.Options{}, mongo.Options{})
	runs := 0
	_, err := in.Process(t.Context(), published(1, 1), func(ctx context.Context, _ inbox.Message) error {
		runs++
		_, err := h.db.Collection("accounts").InsertOne(ctx, bson.D{{Key: "_id", Value: 1}})
		return err
	})
	if runs != 1 || !driver.IsDuplicateKeyError(err) {
		t.Errorf("%d runs: %v", runs, err)
	}
}

// Two handlers take two documents in opposite order: MongoDB sends one of them back,
// which is then run again.
func TestHandlersThatMeetBothSucceed(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	in := h.inbox(inbox.Options{}, mongo.Options{})
	var first sync.WaitGroup // both have their first document
	first.Add(2)
	var wg sync.WaitGroup
	runs := make([]int, 2)
	for i := range 2 {
		wg.Go(func() {
			got, err := in.Process(t.Context(), published(i, int64(i)), func(ctx context.Context, m inbox.Message) error {
				runs[i]++
				err := h.earn(ctx, 1+i, 1)
				if runs[i] == 1 {
					first.Done()
					first.Wait()
				}
				if err == nil {
					err = h.earn(ctx, 2-i, 1)
				}
				if err == nil {
					err = h.pay(ctx, m)
				}
				return err
			})
			is(t, fmt.Sprint("record ", i), inbox.Handled, got, err)
		})
	}
	wg.Wait()
	if runs[0]+runs[1] < 3 {
		t.Errorf("runs %v: they did not meet", runs)
	}
	if n := h.account(1); n != 2 {
		t.Errorf("the account holds %d, want 2", n)
	}
	h.holds(2, 2)
}
