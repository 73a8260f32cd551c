package postgres

import (
	"testing"
	"time"

	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/pgserver"
)

// A tenure is handed on from one dead holder to the next, until one says that its claims
// were given back; from then on it is the time since the shard was taken.
func TestATenureIsHandedOnUntilItsClaimsAreGivenBack(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h, l := leaseHouse(t, srv)
		h.insert(1, 9, 9)
		h.renew(l, "a", outbox.LeaseRequest{Want: 6})
		taken := len(h.claim(outbox.Request{Limit: 5, Shards: held("a")}).Rows)
		h.pass("a", time.Minute)
		b := h.renew(l, "b", outbox.LeaseRequest{Want: 6})
		h.renew(l, "b", outbox.LeaseRequest{Want: 6})
		h.pass("b", time.Minute)
		c := h.renew(l, "c", outbox.LeaseRequest{Want: 6})
		if len(b.Tenures) != 6 || len(c.Tenures) != 6 {
			t.Fatalf("tenures %v, then %v", b.Tenures, c.Tenures)
		}
		// pass has moved what b had of a's, too; the rows with it.
		h.exec(`update public.outbox set processing_at = processing_at - interval '100 s' where status = 'processing'`)
		n, err := h.Reclaim(h.ctx(), outbox.Reclaim{Shards: held("c"), Tenures: c.Tenures, Limit: 100})
		if err != nil || n != taken {
			t.Fatalf("c reclaimed %d of a's %d rows: %v", n, taken, err)
		}
		h.renew(l, "c", outbox.LeaseRequest{Want: 6, Reclaimed: c.Tenures})
		h.pass("c", time.Minute)
		d := h.renew(l, "d", outbox.LeaseRequest{Want: 6})
		for i, x := range d.Tenures {
			if was := h.ask(`select ($1::timestamptz - interval '1 minute')::text`, c.Tenures[i].Until); h.ask(`select $1::timestamptz::text`, x.From) != was {
				t.Fatalf("d's tenure %v does not begin with the end of c's, %s", x, was)
			}
		}
	})
}
