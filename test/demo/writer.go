package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

const (
	// writers commit at the same time, each for keys of its own: what order the
	// events of one key were written in is then beyond doubt.
	writers       = 3
	keysPerWriter = 3
	// pauses make a short demo slow enough to be looked at and a long one quick.
	longestPause = 120 * time.Millisecond
	pausesInAll  = 6 * time.Second
)

var kinds = []string{"OrderPlaced", "OrderPaid", "OrderShipped", "OrderReturned"}

// write commits total events, and rolls others back in between. On ctrl-C it
// ends after the transactions at hand, without an error.
func write(ctx context.Context, url string, total int, t *tally) error {
	left := &budget{left: total}
	pause := min(longestPause, pausesInAll*writers/time.Duration(total))
	var wg sync.WaitGroup
	errs := make([]error, writers)
	for i := range writers {
		wg.Go(func() {
			w := writer{tally: t, budget: left, sequence: map[string]int{}, rand: rand.New(rand.NewPCG(1, uint64(i)))}
			for k := range keysPerWriter {
				w.keys = append(w.keys, fmt.Sprintf("order-%d", i*keysPerWriter+k+1))
			}
			errs[i] = w.run(ctx, url, pause)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// budget is the number of events that are still to be committed.
type budget struct {
	mu   sync.Mutex
	left int
}

func (b *budget) take(n int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n = min(n, b.left)
	b.left -= n
	return n
}

type writer struct {
	tally    *tally
	budget   *budget
	keys     []string
	sequence map[string]int // by key: the n of its last committed event
	rand     *rand.Rand
}

func (w *writer) run(ctx context.Context, url string, pause time.Duration) error {
	// A transaction that has begun is finished whatever happens: its outcome must be known.
	always := context.WithoutCancel(ctx)
	conn, err := pgx.Connect(always, url)
	if err != nil {
		return fmt.Errorf("a writer cannot connect: %w", err)
	}
	defer func() { _ = conn.Close(always) }()
	tick := time.NewTicker(max(pause, time.Microsecond))
	defer tick.Stop()
	for round := 0; ctx.Err() == nil; round++ {
		rows := 1
		if round%3 == 2 {
			rows = 2 + w.rand.IntN(4)
		}
		if round%5 == 3 {
			if err := w.rollBack(always, conn, rows); err != nil {
				return err
			}
			continue
		}
		if rows = w.budget.take(rows); rows == 0 {
			return nil
		}
		if err := w.commit(always, conn, rows, round%4 == 1); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	return nil
}

// commit writes rows in one transaction, with rows in between that a savepoint takes back.
func (w *writer) commit(ctx context.Context, conn *pgx.Conn, rows int, savepoint bool) error {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	text := "alone"
	if rows > 1 {
		text = fmt.Sprintf("one of %d", rows)
	}
	var events []written
	for range rows {
		e, err := w.emit(ctx, tx, text)
		if err != nil {
			return err
		}
		w.sequence[e.key] = e.n
		events = append(events, e)
	}
	if savepoint {
		sub, err := tx.Begin(ctx)
		if err != nil {
			return err
		}
		if _, err := w.emit(ctx, sub, "taken back to a savepoint"); err != nil {
			return err
		}
		if err := sub.Rollback(ctx); err != nil {
			return err
		}
		w.tally.undo(1, false)
	}
	w.tally.committing(events)
	if err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	w.tally.settled(events)
	return nil
}

// rollBack writes rows that nobody may ever see.
func (w *writer) rollBack(ctx context.Context, conn *pgx.Conn, rows int) error {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	for range rows {
		if _, err := w.emit(ctx, tx, "rolled back"); err != nil {
			return err
		}
	}
	w.tally.undo(rows, true)
	return tx.Rollback(ctx)
}

// emit writes one event: mostly a row, now and then a logical message.
func (w *writer) emit(ctx context.Context, tx pgx.Tx, note string) (written, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return written{}, err
	}
	key := w.keys[w.rand.IntN(len(w.keys))]
	e := written{id: id.String(), key: key, n: w.sequence[key] + 1}
	kind := kinds[(e.n-1)%len(kinds)]
	if w.rand.IntN(8) == 0 {
		_, err = tx.Exec(ctx, `select pg_logical_emit_message(true, 'outbox', json_build_object(
			'event_id', $1::text, 'outbox_route', 'orders', 'event_type', $2::text, 'ordering_key', $3::text,
			'payload', jsonb_build_object('n', $4::int, 'written', $5::text || ', as a message'))::text)`, e.id, kind, key, e.n, note)
	} else {
		_, err = tx.Exec(ctx, `insert into outbox (id, event_id, outbox_route, event_type, ordering_key, occurred_at, payload)
			values ($1, $1, 'orders', $2, $3, now(), jsonb_build_object('n', $4::int, 'written', $5::text))`, e.id, kind, key, e.n, note)
	}
	if err != nil {
		return e, fmt.Errorf("writing an event: %w", err)
	}
	return e, nil
}
