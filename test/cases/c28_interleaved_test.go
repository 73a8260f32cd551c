package cases

// C28 LSNs of interleaved transactions
//
// Source: MaterializeInc/materialize#5262, debezium/debezium#4102.
//
// Ideal: rows of overlapping transactions have LSNs that go back and forth;
// nothing is lost and each key is in the order of commits, however often the
// relay is killed, because only the ends of commits are compared.

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/pgserver"
)

func TestC28InterleavedTransactionsSurviveTenKillsInCommitOrder(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, v pgserver.Version) {
		h, k := newRowsHouse(t, v, 3)
		const pairs, kills = 200, 10
		killAt := map[int]bool{}
		for len(killAt) < kills {
			killAt[rand.IntN(pairs)] = true
		}
		first, second := h.PG.Conn(t, h.Database), h.PG.Conn(t, h.Database)
		r := h.Start(t)
		for i := range pairs {
			key := fmt.Sprint("key ", i%7)
			n := int64(3 * i)
			// Written first, committed last: its row stands before that of the other in the
			// log, and comes after it.
			tx := begin(t, first)
			insertRow(t, tx, "orders", key, n+1)
			other := begin(t, second)
			insertRow(t, other, "orders", key, n)
			commit(t, other)
			insertRow(t, tx, "orders", key, n+2)
			commit(t, tx)
			if killAt[i] {
				r.Kill()
				r = h.Start(t)
			}
		}
		drain(t, h)
		committed := committedRows(t, h)
		if len(committed) != 3*pairs+1 {
			t.Fatalf("%d rows are committed, want %d", len(committed), 3*pairs+1)
		}
		records := k.Consume(t, h.Topic)
		// A kill may repeat what was not recorded; without kills there is nothing to repeat.
		oracle.Require(t, committed, records, kills*3*pairs)
		if code, _ := r.Stop(); code != 0 {
			t.Errorf("the stop exited %d", code)
		}
	})
}

func begin(t *testing.T, conn *pgx.Conn) pgx.Tx {
	t.Helper()
	tx, err := conn.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

func commit(t *testing.T, tx pgx.Tx) {
	t.Helper()
	if err := tx.Commit(context.Background()); err != nil {
		t.Fatal(err)
	}
}
