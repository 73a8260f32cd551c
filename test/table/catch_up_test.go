package table

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/rig"
)

// keyOf spreads numbers over keys.
func keyOf(n int) string { return fmt.Sprint("key ", n%20) }

// fill commits the events from to last, each in a transaction of its own, in the order
// of their numbers.
func fill(t testing.TB, h *rig.House, from, last int) {
	t.Helper()
	conn := h.PG.Conn(t, h.Database)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	for n := from; n <= last; n++ {
		if _, err := conn.Exec(t.Context(), insertOf[h.Preset], n, n, keyOf(n), 0); err != nil {
			t.Fatal(err)
		}
	}
}

// dropSlot takes the relay's slot away, as somebody does who frees a disk.
func dropSlot(t testing.TB, h *rig.House) {
	t.Helper()
	rig.Eventually(t, "the end of the slot", soon, func() error {
		_, err := answer(t, h, `select pg_drop_replication_slot($1)::text`, h.Slot)
		return err
	})
}

// owed waits until the house owes nothing.
func owesNothing(t *testing.T, h *rig.House, limit time.Duration) {
	t.Helper()
	rig.Eventually(t, "every row published", limit, func() error {
		n, err := answer(t, h, `select coalesce(string_agg(status || ' ' || n, ', '), '') from (select status, count(*) n from public.outbox where status <> 'published' group by 1) s`)
		if err == nil && n != "" {
			err = errors.New(n)
		}
		return err
	})
}

// A catch-up that is killed wherever it stands goes on where it was: nothing is lost,
// keys keep their order, and no more comes twice than was under way at a kill. Slots are lost
// anew in between, and an application writes all the time.
func TestCatchUpIsResumedWhereverItIsKilled(t *testing.T) {
	t.Parallel()
	on(t, 3, func(t *testing.T, h *rig.House, k *kafkaserver.Server) {
		const (
			batch    = 20
			inFlight = 4*batch + batch // and what the log had acknowledged and not marked, which is less
			kills    = 8
			backlog  = 1000
		)
		h.Postgres = "on_gap: catch_up"
		h.Source = fmt.Sprintf("after_publish: mark\nsweep_every: 500ms\npoll: {interval: 100ms, lease: 3s, batch: %d}", batch)
		h.Kafka = "in_flight_records: 50"
		h.Init(t)
		r := h.Start(t)
		reads(t, r, "log")
		fill(t, h, 1, 20)
		owesNothing(t, h, soon)
		stop(t, r)
		dropSlot(t, h)
		fill(t, h, 21, backlog)
		var (
			last    = backlog
			mu      sync.Mutex
			writing sync.WaitGroup
			end     = make(chan struct{})
		)
		more := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			fill(t, h, last+1, last+n)
			last += n
		}
		writing.Go(func() {
			for {
				select {
				case <-end:
					return
				case <-time.After(20 * time.Millisecond):
					more(1)
				}
			}
		})
		most := 0
		for i := range kills {
			if ask(t, h, `select phase from walrelay.source, pg_replication_slots where slot_name = $1 union all select '' limit 1`, h.Slot) == "streaming" {
				dropSlot(t, h) // it was through: another gap
				more(backlog / 2)
			}
			r = h.Start(t)
			switch {
			case i == kills-1: // through, and at the very beginning of the log
				reads(t, r, "log")
				if n := ask(t, h, `select count(*)::text from public.outbox where status <> 'published' and (payload->>'n')::int <= $1`, backlog); n != "0" {
					t.Errorf("%s rows of the backlog are left to the sweep", n)
				}
			case i%3 > 0: // in the middle
				done := ask(t, h, `select count(*)::text from public.outbox where status = 'published'`)
				r.Eventually("progress", soon, func() error {
					if ask(t, h, `select count(*)::text from public.outbox where status = 'published'`) == done {
						return errors.New("none")
					}
					return nil
				})
				<-time.After(rand.N(100 * time.Millisecond))
			default: // wherever it is
				<-time.After(rand.N(700 * time.Millisecond))
			}
			r.Kill()
			most += inFlight
			t.Logf("kill %d at %s", i, ask(t, h, `select string_agg(status || ' ' || n, ', ') from (select status, count(*) n from public.outbox group by 1) s`))
		}
		r = h.Start(t)
		reads(t, r, "log")
		close(end)
		writing.Wait()
		more(20)
		owesNothing(t, h, soon)
		stop(t, r)
		v := oracle.Require(t, commits(last, keyOf), k.Consume(t, h.Topic), most)
		t.Logf("%d committed, %d duplicates of at most %d", v.Committed, v.Duplicates, most)
	})
}
