package postgres

import (
	"fmt"
	"testing"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/pgserver"
)

func TestRoutesAreAllFound(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h := newHouse(t, srv, event.Forze, forzeTable+`alter table public.outbox alter outbox_route drop not null`, nil)
		for n := 1; n <= 40; n++ {
			route := any(fmt.Sprintf("r%d", n%13))
			if n%10 == 0 {
				route = nil
			}
			h.exec(`insert into public.outbox (id, outbox_route, hlc) values ($1, $2, $3)`, id(n), route, n)
		}
		same(t, "claim", rowIDs(h.claim(outbox.Request{Limit: 100})), ids(1, 40))
		h.exec(`delete from public.outbox where outbox_route is not null; update public.outbox set status = 'pending'`)
		same(t, "claim of rows without a route", rowIDs(h.claim(outbox.Request{Limit: 100})), []string{id(10), id(20), id(30), id(40)})
	})
}

// Rows that were given back one after the other are due in another order than they stand
// in; the first of its key is the one whose turn it is, whichever is due longest.
func TestWhoseTurnItIsIsTakenInTableOrderWhateverTheirDueTimes(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		for _, mode := range []ClaimMode{ClaimRow, ClaimLease} {
			h := newHouse(t, srv, event.Forze, forzeTable, func(o *Options) { o.Claim = mode })
			h.insert(1, 9, 1)
			h.insert(10, 12, 3)
			h.exec(`update public.outbox set attempts = 1, ordering_key = 'held', outbox_route = 'route1', available_at = now() - hlc * interval '1 minute' where hlc < 10;
 update public.outbox set outbox_route = 'loose', ordering_key = 'held' where hlc = 11`)
			req := outbox.Request{Limit: 4, Held: []string{"held"}, Heads: append(ids(1, 9), id(11)), Loose: []string{"loose"}, Except: []string{id(2)}}
			same(t, string(mode), rowIDs(h.claim(req)), []string{id(1), id(3), id(4), id(5)})
			req.Limit, req.Except = 20, append(ids(1, 5), id(10))
			same(t, string(mode)+", the rest", rowIDs(h.claim(req)), []string{id(6), id(7), id(8), id(9), id(11), id(12)})
		}
	})
}
