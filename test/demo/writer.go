package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"
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
func write(ctx context.Context, db database, total int, t *tally) error {
	left := &budget{left: total}
	pause := min(longestPause, pausesInAll*writers/time.Duration(total))
	var wg sync.WaitGroup
	errs := make([]error, writers)
	for i := range writers {
		wg.Go(func() {
			w := writer{db: db, tally: t, budget: left, sequence: map[string]int{}, rand: rand.New(rand.NewPCG(1, uint64(i)))}
			for k := range keysPerWriter {
				w.keys = append(w.keys, fmt.Sprintf("order-%d", i*keysPerWriter+k+1))
			}
			errs[i] = w.run(ctx, pause)
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
	db       database
	tally    *tally
	budget   *budget
	keys     []string
	sequence map[string]int // by key: the n of its last committed event
	rand     *rand.Rand
}

func (w *writer) run(ctx context.Context, pause time.Duration) error {
	// A transaction that has begun is finished whatever happens: its outcome must be known.
	always := context.WithoutCancel(ctx)
	conn, err := w.db.connect(always)
	if err != nil {
		return fmt.Errorf("a writer cannot connect: %w", err)
	}
	defer conn.close(always)
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
		if err := w.commit(always, conn, rows, round%4 == 1 && w.db.undoes()); err != nil {
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
func (w *writer) commit(ctx context.Context, conn session, rows int, savepoint bool) error {
	tx, err := conn.begin(ctx)
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
		sub, err := tx.part(ctx)
		if err != nil {
			return err
		}
		if _, err := w.emit(ctx, sub, "taken back to a savepoint"); err != nil {
			return err
		}
		if err := sub.rollBack(ctx); err != nil {
			return err
		}
		w.tally.undo(1, false)
	}
	w.tally.committing(events)
	if err := tx.commit(ctx); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	w.tally.settled(events)
	return nil
}

// rollBack writes rows that nobody may ever see.
func (w *writer) rollBack(ctx context.Context, conn session, rows int) error {
	tx, err := conn.begin(ctx)
	if err != nil {
		return err
	}
	for range rows {
		if _, err := w.emit(ctx, tx, "rolled back"); err != nil {
			return err
		}
	}
	w.tally.undo(rows, true)
	return tx.rollBack(ctx)
}

// emit writes one event: mostly a row, now and then in another way that the database has.
func (w *writer) emit(ctx context.Context, tx transaction, note string) (written, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return written{}, err
	}
	key := w.keys[w.rand.IntN(len(w.keys))]
	e := written{id: id.String(), key: key, n: w.sequence[key] + 1, aside: w.rand.IntN(8) == 0}
	if err := tx.emit(ctx, e, kinds[(e.n-1)%len(kinds)], note); err != nil {
		return e, fmt.Errorf("writing an event: %w", err)
	}
	return e, nil
}
