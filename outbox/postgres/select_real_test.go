package postgres

import (
	"fmt"
	"slices"
	"testing"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/pgserver"
)

func TestEveryRowIsInExactlyOneShard(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h := newHouse(t, srv, event.Forze, forzeTable, func(o *Options) { o.Claim = ClaimLease })
		h.insert(1, 200, 50)
		h.exec(`update public.outbox set ordering_key = null where hlc % 10 = 0; update public.outbox set ordering_key = '' where hlc % 10 = 1`)
		shardOf, seen := map[string]int{}, 0
		for s := range 8 {
			for _, r := range h.claim(outbox.Request{Limit: 500, Shards: outbox.Shards{Of: 8, Own: []int{s}}}).Rows {
				seen++
				if was, twice := shardOf[r.Key]; twice && was != s {
					t.Fatalf("key %s is in shards %d and %d", r.Key, was, s)
				}
				shardOf[r.Key] = s
			}
		}
		if seen != 200 {
			t.Fatalf("the shards have %d rows", seen)
		}
		if n := len(h.claim(outbox.Request{Limit: 500, Shards: outbox.Shards{Of: 8}}).Rows); n != 0 {
			t.Fatalf("no shard has %d rows", n)
		}
		all := h.claim(outbox.Request{Limit: 500, Shards: outbox.Shards{Of: 8, Own: []int{0, 1, 2, 3, 4, 5, 6, 7}}})
		if len(all.Rows) != 200 || all.Rows[9].Key != string(all.Rows[9].Event.Fields[event.EventID]) {
			t.Fatalf("all shards have %d rows", len(all.Rows))
		}
	})
}

func TestHeldKeysArePassedOverExceptTheirHeadsAndLooseRoutes(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		for _, mode := range []ClaimMode{ClaimRow, ClaimLease} {
			h := newHouse(t, srv, event.Forze, forzeTable, func(o *Options) { o.Claim = mode })
			h.insert(1, 9, 3) // k1: 1 4 7, k2: 2 5 8, k0: 3 6 9; route<n%3> goes along
			h.exec(`update public.outbox set ordering_key = 'k"1\' where ordering_key = 'k1'; update public.outbox set outbox_route = 'loose' where hlc = 8`)
			c := h.claim(outbox.Request{
				Limit: 9, Held: []string{`k"1\`, "k2"}, Heads: []string{id(4), id(77)}, Loose: []string{"loose"}, Except: []string{id(6)},
			})
			same(t, string(mode), rowIDs(c), []string{id(3), id(4), id(8), id(9)})
		}
	})
}

func TestAClaimOfCertainRowsTakesThoseThatArePendingAndDue(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		for _, mode := range []ClaimMode{ClaimRow, ClaimLease} {
			h := newHouse(t, srv, event.Forze, forzeTable, func(o *Options) { o.Claim = mode })
			h.insert(1, 9, 9)
			h.exec(`update public.outbox set status = 'published' where hlc = 2; update public.outbox set available_at = now() + interval '1 hour' where hlc = 3;
 update public.outbox set available_at = now() - interval '1 hour' where hlc = 4`)
			c := h.claim(outbox.Request{Limit: 3, Only: []string{id(7), id(5), id(4), id(3), id(2), id(1), id(99)}, Held: []string{"k1"}})
			same(t, string(mode), rowIDs(c), []string{id(4), id(5), id(7)})
			if c := h.claim(outbox.Request{Limit: 3, Only: []string{}}); len(c.Rows) != 0 {
				t.Fatalf("a claim of no rows took %v", rowIDs(c))
			}
		}
	})
}

func TestALeaseWritesNothingAndItsOutcomesAreGuardedByTheState(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h := newHouse(t, srv, event.Forze, forzeTable, func(o *Options) { o.Claim = ClaimLease })
		h.insert(1, 5, 5)
		c := h.claim(outbox.Request{Limit: 5})
		if c.Fence != "" {
			t.Fatalf("fence %s", c.Fence)
		}
		same(t, "again", rowIDs(h.claim(outbox.Request{Limit: 5})), ids(1, 5))
		h.exec(`update public.outbox set status = 'failed' where hlc = 2`)
		lost := h.settle(outbox.Outcome{ID: id(5), Verdict: outbox.Released}, outbox.Outcome{ID: id(2)}, outbox.Outcome{ID: id(1)},
			outbox.Outcome{ID: id(3), Verdict: outbox.Retry, Attempts: 1, Error: "x"}, outbox.Outcome{ID: id(4), Verdict: outbox.Failed, Error: "y"})
		if !slices.Equal(lost, []int{1}) {
			t.Fatalf("lost %v", lost)
		}
		h.wantRow(1, "published attempts=0 published_at")
		h.wantRow(3, "pending attempts=1 due error=x")
		h.wantRow(4, "failed attempts=0 error=y")
		h.wantRow(5, "pending attempts=0")
		fence, held, err := h.Renew(h.ctx(), "", ids(1, 5))
		slices.Sort(held)
		if fence != "" || err != nil {
			t.Fatal(fence, err)
		}
		same(t, "renewed", held, []string{id(3), id(5)})
	})
}

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
