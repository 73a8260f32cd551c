package conformance

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/walrelay/walrelay/outbox"
)

func (y *yard) renew(holder string, req outbox.LeaseRequest) outbox.LeaseState {
	y.t.Helper()
	if req.Of == 0 {
		req.Of = 6
	}
	s, err := y.leases.Renew(y.ctx(), holder, time.Minute, req)
	if err != nil {
		y.t.Fatal(err)
	}
	return s
}

// pass lets time pass for the server: everything that somebody holds gets that much older.
func (y *yard) pass(holder string, d time.Duration) {
	y.t.Helper()
	y.age(y.t, holder, d)
}

func wantOwn(t *testing.T, who string, s outbox.LeaseState, members int, own ...int) {
	t.Helper()
	if !slices.Equal(s.Own, own) || s.Members != members {
		t.Fatalf("%s holds %v with %d members, want %v with %d", who, s.Own, s.Members, own, members)
	}
}

func TestMembersShareWhatIsFreeAndGiveBackOnRequest(t *testing.T) {
	everywhere(t, options{}, func(t *testing.T, y *yard) {
		wantOwn(t, "a joining", y.renew("a", outbox.LeaseRequest{}), 1)
		wantOwn(t, "a", y.renew("a", outbox.LeaseRequest{Want: 6}), 1, 0, 1, 2, 3, 4, 5)
		s := y.renew("b", outbox.LeaseRequest{Want: 3})
		wantOwn(t, "b", s, 2)
		if !slices.Equal(s.Others, []string{"a"}) || s.Rank != 1 {
			t.Fatalf("b sees the others %v, and is of rank %d", s.Others, s.Rank)
		}
		wantOwn(t, "a, asked for less, gives nothing back by itself", y.renew("a", outbox.LeaseRequest{Want: 3}), 2, 0, 1, 2, 3, 4, 5)
		wantOwn(t, "a", y.renew("a", outbox.LeaseRequest{Want: 3, GiveBack: []int{3, 4, 5}}), 2, 0, 1, 2)
		s = y.renew("b", outbox.LeaseRequest{Want: 3})
		wantOwn(t, "b", s, 2, 3, 4, 5)
		if len(s.Tenures) > 0 {
			t.Fatalf("what was given back has a tenure: %v", s.Tenures)
		}
		if err := y.leases.Release(y.ctx(), "a"); err != nil {
			t.Fatal(err)
		}
		s = y.renew("b", outbox.LeaseRequest{Want: 6})
		wantOwn(t, "b after a left", s, 1, 0, 1, 2, 3, 4, 5)
		if len(s.Tenures) > 0 || s.Rank != 0 || len(s.Others) > 0 {
			t.Fatalf("what was released has a tenure, or somebody is left: %+v", s)
		}
	})
}

func TestWhatIsGivenBackAndWantedIsNotTakenInOneBreath(t *testing.T) {
	everywhere(t, options{}, func(t *testing.T, y *yard) {
		y.renew("a", outbox.LeaseRequest{Want: 4})
		wantOwn(t, "a", y.renew("a", outbox.LeaseRequest{Want: 4, GiveBack: []int{1}}), 1, 0, 2, 3, 4)
	})
}

func TestAnExpiredShardComesWithItsTenure(t *testing.T) {
	everywhere(t, options{}, func(t *testing.T, y *yard) {
		y.renew("a", outbox.LeaseRequest{Want: 2})
		y.put(1, 40, 20)
		c := y.claim(outbox.Request{Limit: 100, Shards: outbox.Shards{Of: 6, Own: []int{0, 1}}})
		if len(c.Rows) == 0 {
			t.Fatal("no row in two of six shards")
		}
		claimed := map[string]int{}
		for _, n := range span(1, 40) {
			claimed[y.id(n)] = n
		}
		var rows []int
		for _, id := range rowIDs(c) {
			rows = append(rows, claimed[id])
		}
		// The claim was made a little after the lease, and both get older.
		y.pass("a", 59*time.Second)
		wantOwn(t, "b, before the end", y.renew("b", outbox.LeaseRequest{Want: 6}), 2, 2, 3, 4, 5)
		y.pass("a", time.Second)
		y.change(fields{"processing_at": moment(-30 * time.Second)}, rows...)
		s := y.renew("b", outbox.LeaseRequest{Want: 6})
		wantOwn(t, "b, after it", s, 1, 0, 1, 2, 3, 4, 5)
		if len(s.Tenures) != 2 || s.Tenures[0].Shard != 0 || s.Tenures[1].Shard != 1 || s.Tenures[0].From >= s.Tenures[0].Until {
			t.Fatalf("tenures %v", s.Tenures)
		}
		if again := y.renew("b", outbox.LeaseRequest{Want: 6}); len(again.Tenures) > 0 {
			t.Fatalf("tenures %v come twice", again.Tenures)
		}
		wantOwn(t, "a, come back late", y.renew("a", outbox.LeaseRequest{Want: 3}), 2)

		// A claim of b's own is outside of it, whatever shard.
		y.put(41, 60, 20)
		mine := y.claim(outbox.Request{Limit: 100, Shards: outbox.Shards{Of: 6, Own: s.Own}})
		n, err := y.Reclaim(y.ctx(), outbox.Reclaim{Shards: outbox.Shards{Of: 6, Own: s.Own}, Tenures: s.Tenures, Limit: 100})
		if err != nil || n != len(c.Rows) {
			t.Fatalf("reclaimed %d of the dead holder's %d rows, beside %d of our own: %v", n, len(c.Rows), len(mine.Rows), err)
		}
	})
}

func TestWhoWantsAllTakesNoneWithoutTheFirst(t *testing.T) {
	everywhere(t, options{}, func(t *testing.T, y *yard) {
		y.renew("a", outbox.LeaseRequest{Want: 1})
		wantOwn(t, "b", y.renew("b", outbox.LeaseRequest{Want: 6, All: true}), 1) // and has no share of a's
		wantOwn(t, "a", y.renew("a", outbox.LeaseRequest{Want: 6}), 1, 0, 1, 2, 3, 4, 5)
		if err := y.leases.Release(y.ctx(), "a"); err != nil {
			t.Fatal(err)
		}
		wantOwn(t, "b", y.renew("b", outbox.LeaseRequest{Want: 6, All: true}), 1, 0, 1, 2, 3, 4, 5)
		wantOwn(t, "c", y.renew("c", outbox.LeaseRequest{Want: 6, All: true}), 1)
	})
}

func TestAnotherCutIsWaitedFor(t *testing.T) {
	everywhere(t, options{}, func(t *testing.T, y *yard) {
		y.renew("a", outbox.LeaseRequest{Want: 6})
		s := y.renew("b", outbox.LeaseRequest{Of: 8, Want: 8})
		if len(s.Own) > 0 || !slices.Equal(s.Others, []string{"a"}) {
			t.Fatalf("b holds %v beside a's six of six, others %v", s.Own, s.Others)
		}
		wantOwn(t, "a", y.renew("a", outbox.LeaseRequest{Want: 6}), 1, 0, 1, 2, 3, 4, 5)
		y.pass("a", time.Minute)
		if s = y.renew("b", outbox.LeaseRequest{Of: 8, Want: 8}); len(s.Own) != 8 || s.Members != 1 {
			t.Fatalf("b holds %v after a's end, with %d members", s.Own, s.Members)
		}
	})
}

func TestTwoSourcesAndManyMembersNeverShareAShard(t *testing.T) {
	everywhere(t, options{}, func(t *testing.T, y *yard) {
		if s := y.another(options{owner: "shop/other"}).renew("a", outbox.LeaseRequest{Want: 6}); len(s.Own) != 6 {
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
					if a.s, a.err = y.leases.Renew(y.ctx(), a.who, time.Minute, outbox.LeaseRequest{Of: 16, Want: 4}); a.err != nil {
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
