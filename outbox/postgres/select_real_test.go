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
