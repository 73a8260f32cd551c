package workload

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
)

// finishWithin bounds a transaction, and the wait for a server that is away.
const finishWithin = 90 * time.Second

// writer is one session of the application.
type writer struct {
	load   *Load
	number int
	rnd    *rand.Rand
	conn   *pgx.Conn // nil after an error
}

// run begins a transaction for each ticket, until there are no more.
func (w *writer) run(ctx context.Context, tickets <-chan struct{}) error {
	defer w.hangUp()
	for range tickets {
		// The end of the run must not cut a transaction short.
		tx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishWithin)
		err := w.connect(tx)
		if err == nil {
			err = w.transaction(tx)
		}
		cancel()
		if err == nil {
			continue
		}
		if !passing(err) {
			return err
		}
		w.hangUp()
	}
	return nil
}

func (w *writer) connect(ctx context.Context) error {
	if w.conn != nil {
		return nil
	}
	retry := time.NewTicker(20 * time.Millisecond)
	defer retry.Stop()
	for {
		conn, err := pgx.Connect(ctx, w.load.opts.DSN)
		if err == nil {
			w.conn = conn
			return nil
		}
		if !passing(err) || ctx.Err() != nil {
			return err
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			return err
		}
	}
}

func (w *writer) hangUp() {
	if w.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = w.conn.Close(ctx)
	w.conn = nil
}

// chance is true in that share of all cases.
func (w *writer) chance(share float64) bool { return w.rnd.Float64() < share }
