package postgres_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/inbox"
	"github.com/walrelay/walrelay/inbox/postgres"
	"github.com/walrelay/walrelay/test/pgserver"
)

// waiting waits until so many statements wait for the lock of a transaction.
func (h *house) waiting(n int) {
	h.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for h.count(`select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`) < n {
		if time.Now().After(deadline) {
			h.t.Errorf("%d statements never waited", n)
			return
		}
		h.exec(`select pg_sleep(0.01)`)
	}
}

// After a rebalance two consumers can hold the same record.
func TestOneOfTwoConsumersWithTheSameRecordRunsTheHandler(t *testing.T) {
	for _, level := range []pgx.TxIsoLevel{"", pgx.RepeatableRead, pgx.Serializable} {
		t.Run(string(level), func(t *testing.T) {
			onEach(t, func(t *testing.T, pg *pgserver.Server) {
				h := newHouse(t, pg)
				var runs atomic.Int32
				started, other := make(chan struct{}), make(chan struct{})
				consume := func(hold bool) (inbox.Outcome, error) {
					in := h.inbox(inbox.Options{}, postgres.Options{Isolation: level})
					return in.Process(t.Context(), h.pool, published(1, 1), func(ctx context.Context, tx pgx.Tx, m inbox.Message) error {
						runs.Add(1)
						if hold {
							close(started)
							<-other
						}
						return pay(ctx, tx, m)
					})
				}
				var wg sync.WaitGroup
				wg.Go(func() {
					got, err := consume(true)
					is(t, "the first", inbox.Handled, got, err)
				})
				wg.Go(func() {
					<-started
					got, err := consume(false)
					is(t, "the second", inbox.Duplicate, got, err)
				})
				<-started
				h.waiting(1)
				close(other)
				wg.Wait()
				if runs.Load() != 1 {
					t.Errorf("the handler ran %d times", runs.Load())
				}
				h.holds(1, 1)
			})
		})
	}
}

func TestConsumerThatWaitedRunsTheHandlerWhenTheOtherFails(t *testing.T) {
	onEach(t, func(t *testing.T, pg *pgserver.Server) {
		h := newHouse(t, pg)
		in := h.inbox(inbox.Options{}, postgres.Options{})
		started, other := make(chan struct{}), make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := in.Process(t.Context(), h.pool, published(1, 1), func(ctx context.Context, tx pgx.Tx, m inbox.Message) error {
				close(started)
				<-other
				return payThenFail(ctx, tx, m)
			})
			if !errors.Is(err, errNoMoney) {
				t.Errorf("the first: %v", err)
			}
		})
		wg.Go(func() {
			<-started
			got, err := in.Process(t.Context(), h.pool, published(1, 1), pay)
			is(t, "the second", inbox.Handled, got, err)
		})
		<-started
		h.waiting(1)
		close(other)
		wg.Wait()
		h.holds(1, 1)
	})
}

// Many consumers, many records, each delivered to all of them in a different order.
func TestManyConsumersHandleEachRecordOnce(t *testing.T) {
	onEach(t, func(t *testing.T, pg *pgserver.Server) {
		h := newHouse(t, pg)
		const consumers, records = 4, 50
		in := h.inbox(inbox.Options{}, postgres.Options{})
		var wg sync.WaitGroup
		for c := range consumers {
			wg.Go(func() {
				for i := range records {
					n := (i*(2*c+1) + 7*c) % records
					if _, err := in.Process(t.Context(), h.pool, published(n, int64(n)), pay); err != nil {
						t.Errorf("consumer %d, record %d: %v", c, n, err)
					}
				}
			})
		}
		wg.Wait()
		if s := in.Stats(); s.Handled != records || s.Handled+s.Duplicates != consumers*records {
			t.Errorf("stats %+v", s)
		}
		if n := h.count(`select count(distinct id) from payments`); n != records {
			t.Errorf("%d events are paid for, want %d", n, records)
		}
		h.holds(records, records)
	})
}
