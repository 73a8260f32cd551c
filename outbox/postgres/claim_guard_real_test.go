package postgres

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/pgserver"
)

const leaseTable = `create schema walrelay; create table walrelay.lease (owner text not null, unit text not null, holder text not null,
 acquired_at timestamptz not null, expires_at timestamptz not null, primary key (owner, unit));`

// leaseHouse is a database with leases in it.
func leaseHouse(t *testing.T, srv *pgserver.Server) (*house, *Leases) {
	h := newHouse(t, srv, event.Forze, forzeTable+leaseTable, nil)
	return h, h.db.Leases()
}

func (h *house) renew(l *Leases, holder string, req outbox.LeaseRequest) outbox.LeaseState {
	h.t.Helper()
	if req.Of == 0 {
		req.Of = 6
	}
	s, err := l.Renew(h.ctx(), holder, time.Minute, req)
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

// pass lets time pass for the server: everything that somebody holds gets that much older.
func (h *house) pass(holder string, d time.Duration) {
	h.t.Helper()
	h.exec(`update walrelay.lease set acquired_at = acquired_at - $2::text::interval, expires_at = expires_at - $2::text::interval where holder = $1`, holder, d.String())
}

func wantOwn(t *testing.T, who string, s outbox.LeaseState, own ...int) {
	t.Helper()
	if !slices.Equal(s.Own, own) {
		t.Fatalf("%s holds %v, want %v", who, s.Own, own)
	}
}

var all = []int{0, 1, 2, 3, 4, 5}

// held are all shards, under a's lease.
func held(holder string) outbox.Shards { return outbox.Shards{Of: 6, Own: all, Holder: holder} }

// slowClaim begins a claim of holder a that does not end before the test lets it.
func (h *house) slowClaim() (letGo func() (rows int)) {
	h.t.Helper()
	h.exec(`create function slow() returns trigger language plpgsql as 'begin if new.status = ''processing'' then perform pg_advisory_xact_lock(7); end if; return new; end';
 create trigger slow before update on public.outbox for each row execute function slow(); select pg_advisory_lock(7)`)
	type answer struct {
		c   *outbox.Claim
		err error
	}
	done := make(chan answer, 1)
	go func() {
		c, err := h.Claim(h.ctx(), outbox.Request{Limit: 2, Shards: held("a")})
		done <- answer{c, err}
	}()
	h.untilWaiting(1)
	return func() int {
		h.t.Helper()
		h.exec(`select pg_advisory_unlock(7)`)
		a := <-done
		if a.err != nil {
			h.t.Fatal(a.err)
		}
		return len(a.c.Rows)
	}
}

func (h *house) untilWaiting(n int) {
	h.t.Helper()
	h.until(fmt.Sprint(n, " wait for a lock"), fmt.Sprintf(`select (count(*) = %d)::text from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`, n))
}

// A claim goes on in the server when its client is gone. Nobody takes its holder's shards
// before it is over, whether he dies, stops, or would give them back, also who cuts the keys in another
// way; then what it took is found.
func TestNobodyTakesOverInTheMiddleOfAClaim(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h, l := leaseHouse(t, srv)
		h.insert(1, 3, 3)
		h.renew(l, "a", outbox.LeaseRequest{Want: 6})
		letGo := h.slowClaim()
		wantOwn(t, "a, who would give them back in the middle,", h.renew(l, "a", outbox.LeaseRequest{Want: 6, GiveBack: all}), all...)
		if err := l.Release(h.ctx(), "a"); err != nil {
			t.Fatal(err)
		}
		wantOwn(t, "b after a stopped", h.renew(l, "b", outbox.LeaseRequest{Want: 6}))
		h.pass("a", time.Minute)
		wantOwn(t, "b in the middle", h.renew(l, "b", outbox.LeaseRequest{Want: 6}))
		wantOwn(t, "c of another cut", h.renew(l, "c", outbox.LeaseRequest{Of: 8, Want: 8}))
		if n := letGo(); n != 2 {
			t.Fatalf("the claim took %d rows", n)
		}
		s := h.renew(l, "b", outbox.LeaseRequest{Want: 6})
		wantOwn(t, "b at its end", s, all...)
		n, err := h.Reclaim(h.ctx(), outbox.Reclaim{Shards: held("b"), Tenures: s.Tenures, Limit: 100})
		if err != nil || n != 2 {
			t.Fatalf("reclaimed %d of 2 rows: %v", n, err)
		}
	})
}

// A claim that begins late, through a pooler that had no connection free, takes nothing
// once its holder's lease is over, whether somebody else has it by then or not.
func TestAClaimTakesNothingWithoutItsLease(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h, l := leaseHouse(t, srv)
		h.insert(1, 3, 3)
		take := func(who string, s outbox.Shards, want int) {
			t.Helper()
			if n := len(h.claim(outbox.Request{Limit: 1, Shards: s}).Rows); n != want {
				t.Fatalf("%s took %d rows, want %d", who, n, want)
			}
		}
		h.renew(l, "a", outbox.LeaseRequest{Want: 6})
		take("a", held("a"), 1)
		take("who never had a lease", held("b"), 0)
		h.pass("a", time.Minute)
		take("a, whose lease ran out", held("a"), 0)
		h.renew(l, "b", outbox.LeaseRequest{Want: 6})
		take("a, whose lease b has", held("a"), 0)
		take("b", held("b"), 1)
		h.renew(l, "b", outbox.LeaseRequest{Want: 5, GiveBack: []int{5}})
		take("b, who gave one of them back", held("b"), 0)
		take("b", outbox.Shards{Of: 6, Own: all[:5], Holder: "b"}, 1)
	})
}

// Its answer was lost, and its holder goes on. Whatever he looks for, he does not miss what
// it takes; somebody else does not wait.
func TestNobodyLooksInTheMiddleOfHisOwnClaim(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"look", "reclaim"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
				h, l := leaseHouse(t, srv)
				h.insert(1, 3, 3)
				h.renew(l, "a", outbox.LeaseRequest{Want: 6})
				letGo := h.slowClaim()
				look := func(s outbox.Shards) string {
					if what == "look" {
						rows, _, err := h.Unfinished(h.ctx(), s, 9)
						return fmt.Sprint(len(rows), err)
					}
					r := outbox.Reclaim{Shards: s}
					for _, n := range s.Own {
						r.Tenures = append(r.Tenures, outbox.Tenure{Shard: n, From: "-infinity", Until: "infinity"})
					}
					n, err := h.Reclaim(h.ctx(), r)
					return fmt.Sprint(n, err)
				}
				if got := look(held("b")); got != "0 <nil>" {
					t.Fatalf("somebody else found %s", got)
				}
				found := make(chan string, 1)
				go func() { found <- look(held("a")) }()
				h.untilWaiting(2)
				letGo()
				if got := <-found; got != "2 <nil>" {
					t.Errorf("found %s, want the 2 rows of the claim", got)
				}
			})
		})
	}
}
