package postgres

// Units of work beside each other.

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/hlc"
)

// Many at a time, of which a third is rolled back: rows and mark are those of the
// transactions that committed, and no stamp was issued twice.
func TestRowsAndMarkAreThoseOfTheTransactionsThatCommitted(t *testing.T) {
	onEach(t, func(t *testing.T, h *house) {
		x := h.open(Options{})
		var mu sync.Mutex
		var top hlc.Stamp
		committed := 0
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				for k := range 15 {
					w := h.begin()
					res, err := x.Flush(context.Background(), w.db, h.stage(x.Buffer(), some(1+k%3)...))
					if err != nil {
						t.Error(err)
					}
					if (i+k)%3 == 0 {
						w.rollback()
						continue
					}
					w.commit()
					mu.Lock()
					committed += res.Written
					top = max(top, res.Mark)
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		h.wants(fmt.Sprintf("%d %d %s", committed, committed, packed(top)), `select concat_ws(' ', count(*), count(distinct hlc), max(hlc)) from outbox`)
		h.wantsMark(top)
	})
}

// At the stricter levels two units of work that raise the same row conflict, and
// those of different stripes do not.
func TestLaterOfTwoSerializableUnitsOfWorkHasToBeRunAgain(t *testing.T) {
	onEachServer(t, func(t *testing.T, h *house) {
		ctx := context.Background()
		for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
			for stripes, want := range map[int]string{0: "40001", 1 << 20: ""} {
				x := h.open(Options{Checkpoint: Checkpoint{Stripes: stripes}})
				h.flush(x, some(1)...)
				later, err := h.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: level})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := later.Exec(ctx, `select 1 from hlc_checkpoint`); err != nil { // its snapshot
					t.Fatal(err)
				}
				h.flush(x, some(1)...)
				b := h.stage(x.Buffer(), some(1)...)
				if _, err = x.Flush(ctx, Pgx(later), b); sqlState(err) != want {
					t.Errorf("%s, %d stripes: %v, want SQLSTATE %q", level, stripes, err, want)
				}
				if err := later.Rollback(ctx); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
