package mongo

import (
	"testing"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/mongoserver"
)

// What was answered has the majority: the next primary knows it.
func TestLeasesAndParkedEventsOutliveTheirPrimary(t *testing.T) {
	t.Parallel()
	srv := mongoserver.Start(t, mongoserver.Options{Nodes: 3})
	h := newHouse(t, srv, event.Forze, nil)
	h.insert(1, 2, 2)
	k, l := h.db.Parking(), h.db.Leases()
	until := func(what string, f func() error) {
		t.Helper()
		deadline := time.Now().Add(60 * time.Second)
		for {
			err := f()
			if err == nil {
				return
			}
			if event.ClassOf(err) != event.Retry || time.Now().After(deadline) {
				t.Fatalf("%s: %v", what, err)
			}
		}
	}
	renew := func(holder string) (s outbox.LeaseState) {
		t.Helper()
		until(holder+" renews", func() (err error) {
			s, err = l.Renew(h.ctx(), holder, 5*time.Minute, outbox.LeaseRequest{Of: 4, Want: 4})
			return err
		})
		return s
	}
	parked := 0
	park := func() {
		t.Helper()
		parked++
		until("park", func() error { return k.Park(h.ctx(), h.message(100+parked, "m")) })
	}
	if s := renew("a"); len(s.Own) != 4 {
		t.Fatalf("a holds %v", s.Own)
	}
	until("park a row", func() error { return k.Park(h.ctx(), h.parked(1, "k")) })
	for _, end := range []func(t *testing.T){
		func(t *testing.T) { srv.StepDown(t) },
		func(t *testing.T) { srv.Kill(t, srv.Primary(t)) },
	} {
		park()
		end(t)
		if s := renew("b"); len(s.Own) != 0 || len(s.Others) != 1 {
			t.Fatalf("b holds %v of a's, others %v", s.Own, s.Others)
		}
		if s := renew("a"); len(s.Own) != 4 || s.Members != 2 {
			t.Fatalf("a holds %v of %d members", s.Own, s.Members)
		}
		park()
	}
	until("held", func() error {
		held, err := k.Held(h.ctx())
		if err == nil && (len(held) != 2 || !held[0].Parked) {
			t.Fatalf("held %+v", held)
		}
		return err
	})
	until("list", func() error {
		list, err := k.List(h.ctx(), outbox.ParkedFilter{})
		if err == nil && len(list) != 1+parked {
			t.Fatalf("%d entries, want %d", len(list), 1+parked)
		}
		return err
	})
}
