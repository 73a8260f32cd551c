package postgres

import (
	"fmt"
	"slices"
	"strings"
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

func wantOwn(t *testing.T, who string, s outbox.LeaseState, members int, own ...int) {
	t.Helper()
	if !slices.Equal(s.Own, own) || s.Members != members {
		t.Fatalf("%s holds %v with %d members, want %v with %d", who, s.Own, s.Members, own, members)
	}
}

func TestMembersShareWhatIsFreeAndGiveBackOnRequest(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h, l := leaseHouse(t, srv)
		wantOwn(t, "a joining", h.renew(l, "a", outbox.LeaseRequest{}), 1)
		wantOwn(t, "a", h.renew(l, "a", outbox.LeaseRequest{Want: 6}), 1, 0, 1, 2, 3, 4, 5)
		s := h.renew(l, "b", outbox.LeaseRequest{Want: 3})
		wantOwn(t, "b", s, 2)
		if !slices.Equal(s.Others, []string{"a"}) {
			t.Fatalf("b sees the others %v", s.Others)
		}
		wantOwn(t, "a, asked for less, gives nothing back by itself", h.renew(l, "a", outbox.LeaseRequest{Want: 3}), 2, 0, 1, 2, 3, 4, 5)
		wantOwn(t, "a", h.renew(l, "a", outbox.LeaseRequest{Want: 3, GiveBack: []int{3, 4, 5}}), 2, 0, 1, 2)
		s = h.renew(l, "b", outbox.LeaseRequest{Want: 3})
		wantOwn(t, "b", s, 2, 3, 4, 5)
		if len(s.Tenures) > 0 {
			t.Fatalf("what was given back has a tenure: %v", s.Tenures)
		}
		if err := l.Release(h.ctx(), "a"); err != nil {
			t.Fatal(err)
		}
		s = h.renew(l, "b", outbox.LeaseRequest{Want: 6})
		wantOwn(t, "b after a left", s, 1, 0, 1, 2, 3, 4, 5)
		if len(s.Tenures) > 0 {
			t.Fatalf("what was released has a tenure: %v", s.Tenures)
		}
	})
}

func TestAnExpiredShardComesWithItsTenure(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h, l := leaseHouse(t, srv)
		h.renew(l, "a", outbox.LeaseRequest{Want: 2})
		h.insert(1, 40, 20)
		c := h.claim(outbox.Request{Limit: 100, Shards: outbox.Shards{Of: 6, Own: []int{0, 1}}})
		if len(c.Rows) == 0 {
			t.Fatal("no row in two of six shards")
		}
		h.pass("a", 59*time.Second)
		h.exec("update public.outbox set processing_at = processing_at - interval '59 s' where status = 'processing'")
		wantOwn(t, "b, before the end", h.renew(l, "b", outbox.LeaseRequest{Want: 6}), 2, 2, 3, 4, 5)
		h.pass("a", time.Second)
		h.exec("update public.outbox set processing_at = processing_at - interval '1 s' where status = 'processing'")
		s := h.renew(l, "b", outbox.LeaseRequest{Want: 6})
		wantOwn(t, "b, after it", s, 1, 0, 1, 2, 3, 4, 5)
		if len(s.Tenures) != 2 || s.Tenures[0].Shard != 0 || s.Tenures[1].Shard != 1 || s.Tenures[0].From >= s.Tenures[0].Until {
			t.Fatalf("tenures %v", s.Tenures)
		}
		wantOwn(t, "a, come back late", h.renew(l, "a", outbox.LeaseRequest{Want: 3}), 2)

		// A claim of b's own is outside of it, whatever shard.
		h.insert(41, 60, 20)
		mine := h.claim(outbox.Request{Limit: 100, Shards: outbox.Shards{Of: 6, Own: s.Own}})
		n, err := h.Reclaim(h.ctx(), outbox.Reclaim{Shards: outbox.Shards{Of: 6, Own: s.Own}, Tenures: s.Tenures, Limit: 100})
		if err != nil || n != len(c.Rows) {
			t.Fatalf("reclaimed %d of the dead holder's %d rows, beside %d of our own: %v", n, len(c.Rows), len(mine.Rows), err)
		}
	})
}

func TestWhoWantsAllTakesNoneWithoutTheFirst(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h, l := leaseHouse(t, srv)
		h.renew(l, "a", outbox.LeaseRequest{Want: 1})
		wantOwn(t, "b", h.renew(l, "b", outbox.LeaseRequest{Want: 6, All: true}), 1) // and has no share of a's
		wantOwn(t, "a", h.renew(l, "a", outbox.LeaseRequest{Want: 6}), 1, 0, 1, 2, 3, 4, 5)
		if err := l.Release(h.ctx(), "a"); err != nil {
			t.Fatal(err)
		}
		wantOwn(t, "b", h.renew(l, "b", outbox.LeaseRequest{Want: 6, All: true}), 1, 0, 1, 2, 3, 4, 5)
		wantOwn(t, "c", h.renew(l, "c", outbox.LeaseRequest{Want: 6, All: true}), 1)
	})
}

func TestAnotherCutIsWaitedFor(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h, l := leaseHouse(t, srv)
		h.renew(l, "a", outbox.LeaseRequest{Want: 6})
		s := h.renew(l, "b", outbox.LeaseRequest{Of: 8, Want: 8})
		if len(s.Own) > 0 || !slices.Equal(s.Others, []string{"a"}) {
			t.Fatalf("b holds %v beside a's six of six, others %v", s.Own, s.Others)
		}
		wantOwn(t, "a", h.renew(l, "a", outbox.LeaseRequest{Want: 6}), 1, 0, 1, 2, 3, 4, 5)
		h.pass("a", time.Minute)
		if s = h.renew(l, "b", outbox.LeaseRequest{Of: 8, Want: 8}); len(s.Own) != 8 || s.Members != 1 {
			t.Fatalf("b holds %v after a's end, with %d members", s.Own, s.Members)
		}
	})
}

func TestTwoSourcesAndManyMembersNeverShareAShard(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h, l := leaseHouse(t, srv)
		_, other := h.another(event.Forze, func(o *Options) { o.Owner = "shop/other" })
		if s := h.renew(other.Leases(), "a", outbox.LeaseRequest{Want: 6}); len(s.Own) != 6 {
			t.Fatal("the other source's leases")
		}
		type answer struct {
			who string
			s   outbox.LeaseState
			err error
		}
		answers := make(chan answer)
		for n := range 4 {
			go func() {
				a := answer{who: fmt.Sprint("m", n)}
				for range 10 {
					if a.s, a.err = l.Renew(h.ctx(), a.who, time.Minute, outbox.LeaseRequest{Of: 16, Want: 4}); a.err != nil {
						break
					}
				}
				answers <- a
			}()
		}
		var all []int
		for range 4 {
			a := <-answers
			if a.err != nil {
				t.Fatal(a.err)
			}
			all = append(all, a.s.Own...)
		}
		slices.Sort(all)
		if len(all) != 16 || len(slices.Compact(all)) != 16 {
			t.Fatalf("four members hold %v", all)
		}
	})
}

func TestALeaseNeedsItsTable(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h := newHouse(t, srv, event.Forze, forzeTable, nil)
		_, err := h.db.Leases().Renew(h.ctx(), "a", time.Minute, outbox.LeaseRequest{Of: 6, Want: 6})
		if event.ClassOf(err) != event.Halt || err == nil || !strings.Contains(err.Error(), "walrelay init") {
			t.Fatalf("want a halt that names init, got %v", err)
		}
	})
}
