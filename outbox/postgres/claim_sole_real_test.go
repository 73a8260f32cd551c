package postgres

import (
	"testing"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/pgserver"
)

// The guess that one route has all rows is wrong as soon as another one gets some, or
// one of its own rows has a due time.
func TestRowsOfAnotherRouteOrWithADueTimeAreNeverPassedOver(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		for what, change := range map[string]string{
			"another route":               `update public.outbox set outbox_route = 'other' where hlc % 2 = 0`,
			"a due time":                  `update public.outbox set available_at = now() where hlc % 2 = 0`,
			"a route whose name is lower": `update public.outbox set outbox_route = 'a' where hlc % 2 = 0`,
		} {
			h := newHouse(t, srv, event.Forze, forzeTable, func(o *Options) { o.Claim = ClaimLease })
			h.insert(1, 40, 7)
			h.exec(`update public.outbox set outbox_route = 'mine'`)
			same(t, what+": before", rowIDs(h.claim(outbox.Request{Limit: 10})), ids(1, 10))
			if _, known := h.soleRoute(&outbox.Request{}); !known {
				t.Fatal("one route had all rows, and it was not noted")
			}
			same(t, what+": alone", rowIDs(h.claim(outbox.Request{Limit: 10, Except: ids(1, 10)})), ids(11, 20))
			h.exec(change)
			for range soleRest + 3 {
				same(t, what+": after", rowIDs(h.claim(outbox.Request{Limit: 10, Except: ids(11, 20)})), ids(1, 10))
			}
			h.exec(`update public.outbox set outbox_route = 'mine', available_at = null`)
			for range soleRest + 3 {
				same(t, what+": alone again", rowIDs(h.claim(outbox.Request{Limit: 10})), ids(1, 10))
			}
			if _, known := h.soleRoute(&outbox.Request{}); !known {
				t.Fatal("one route has all rows again, and it was not noted")
			}
		}
	})
}
