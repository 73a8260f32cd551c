package order

import (
	"strings"
	"testing"

	"github.com/walrelay/walrelay/test/pgserver"
)

// When a prepared transaction began is kept nowhere: as long as there is one, events wait for
// order.transaction, by which it is assumed to have ended.
func TestPreparedTransactionHoldsEventsBackForOrderTransactionAtMost(t *testing.T) {
	t.Parallel()
	pg := pgserver.Start(t, pgserver.Options{Settings: map[string]string{"max_prepared_transactions": "10"}})
	for name, order := range map[string]string{
		"committed meanwhile": patient,
		"left open":           strings.Replace(patient, "transaction: 10m", "transaction: 2s", 1),
	} {
		t.Run(name, func(t *testing.T) {
			h, k := newHouse(t, pg, 1, byStamp, order)
			h.Init(t)
			r := h.Start(t)
			r.WaitReady(soon)
			stamps := clock(0)
			db := h.PG.Conn(t, h.Database)
			first := begin(t, h)
			stage(t, first, "a", "a1", stamps.Now())
			if _, err := first.Exec(t.Context(), `prepare transaction 'both'`); err != nil {
				t.Fatal(err)
			}
			stage(t, db, "a", "a2", stamps.Now())
			received(t, r, 0, 1)
			looked(t, h, 5)
			if order == patient {
				if n := len(k.Consume(t, h.Topic)); n != 0 {
					t.Fatalf("%d records while a transaction is prepared", n)
				}
				h.Exec(t, `commit prepared 'both'`)
				arrives(t, k, h, 2, "a1 a2")
			} else {
				arrives(t, k, h, 1, "a2")
				h.Exec(t, `commit prepared 'both'`)
				arrives(t, k, h, 2, "a2 a1")
				if j := judge(t, k.Consume(t, h.Topic)); j.late != 1 {
					t.Errorf("%+v, want one that says that it is late", j)
				}
			}
			stop(t, r)
		})
	}
}
