package table

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/rig"
)

// A source that reads the log where it can goes over to the table when the right to
// replicate is taken away, and back, again and again, with an application at work; its relay is
// killed while it polls, and starts again without the right. Nothing is lost, keys keep their order,
// and no more comes twice than the kills had under way.
func TestAutoGoesOverAndBackAgainAndAgain(t *testing.T) {
	t.Parallel()
	on(t, 3, func(t *testing.T, h *rig.House, k *kafkaserver.Server) {
		const batch, cycles = 20, 2
		h.Postgres = "capture: auto"
		h.Source = "after_publish: mark\nsweep_every: 500ms\npoll: {interval: 100ms, lease: 3s, batch: 20}"
		h.Init(t)
		role, password := h.PG.NewRole(t, "replication")
		for _, grant := range []string{
			"grant usage on schema public, walrelay to ", "grant all on all tables in schema public to ", "grant all on all tables in schema walrelay to ",
		} {
			h.Exec(t, grant+role)
		}
		h.URL = h.PG.URLAs(role, password, h.Database)
		r := h.Start(t)
		reads(t, r, "log")
		var (
			last    int
			writing sync.WaitGroup
			end     = make(chan struct{})
		)
		writing.Go(func() {
			for {
				select {
				case <-end:
					return
				case <-time.After(10 * time.Millisecond):
					last++
					fill(t, h, last, last)
				}
			}
		})
		most := 0
		for i := range cycles {
			h.Exec(t, "alter role "+role+" noreplication")
			h.Exec(t, `select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = $1 and active`, h.Slot)
			reads(t, r, "poll")
			progress(t, h)
			if i > 0 {
				r.Kill()
				most += 5 * batch
				r = h.Start(t)
				reads(t, r, "poll")
				progress(t, h)
			}
			h.Exec(t, "alter role "+role+" replication")
			reads(t, r, "log")
			progress(t, h)
		}
		close(end)
		writing.Wait()
		owesNothing(t, h, soon)
		stop(t, r)
		v := oracle.Require(t, commits(last, keyOf), k.Consume(t, h.Topic), most)
		t.Logf("%d committed, %d duplicates of at most %d", v.Committed, v.Duplicates, most)
	})
}

// progress waits until rows that are written from now on are published.
func progress(t *testing.T, h *rig.House) {
	t.Helper()
	from := ask(t, h, `select coalesce(max((payload->>'n')::int), 0)::text from public.outbox`)
	rig.Eventually(t, "rows after number "+from, soon, func() error {
		if ask(t, h, `select count(*)::text from public.outbox where status = 'published' and (payload->>'n')::int > $1::text::int + 20`, from) == "0" {
			return errors.New("none")
		}
		return nil
	})
}
