package order

import (
	"errors"
	"testing"

	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

// settled waits until every row is published.
func settled(t *testing.T, h *rig.House) {
	t.Helper()
	rig.Eventually(t, "every row published", soon, func() error {
		if n := ask(t, h, `select coalesce(string_agg(status || ' ' || n, ', '), '') from (select status, count(*) n from public.outbox where status <> 'published' group by 1) s`); n != "" {
			return errors.New(n)
		}
		return nil
	})
}

func TestRowThatIsRequeuedComesOnceMore(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, v pgserver.Version) {
		h, k := newHouse(t, pgserver.Shared(t, v), 1, byStamp, patient)
		h.Source = "after_publish: mark\nsweep_every: 500ms"
		h.Init(t)
		r := h.Start(t)
		r.WaitReady(soon)
		stamps := clock(0)
		db := h.PG.Conn(t, h.Database)
		stage(t, db, "a", "a1", stamps.Now())
		stage(t, db, "b", "b2", stamps.Now())
		settled(t, h)
		h.Exec(t, `update outbox set status = 'failed' where ordering_key = 'a'`)
		h.Exec(t, `update outbox set status = 'pending', processing_at = null, published_at = null, last_error = null, attempts = 0, available_at = null where status = 'failed'`)
		settled(t, h)
		stage(t, db, "a", "a3", stamps.Now())
		settled(t, h)
		stop(t, r)
		if got := names(k.Consume(t, h.Topic)); got != "a1 b2 a1 a3" {
			t.Errorf("arrived %s, want a1 once more", got)
		}
	})
}

// Rows that are older than the slot are claimed from the table before the log is read: nothing
// says of them what is still to come, so that they must not wait for it.
func TestCatchUpBeforeTheLogEndsAndLosesNothing(t *testing.T) {
	t.Parallel()
	for _, m := range []mode{byStamp, withinKey} {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, v pgserver.Version) {
				h, k := newHouse(t, pgserver.Shared(t, v), 1, m, patient)
				h.Source = "after_publish: mark"
				h.Init(t)
				stamps := clock(0)
				db := h.PG.Conn(t, h.Database)
				for _, name := range []string{"a1", "b2", "a3"} {
					stage(t, db, name[:1], name, stamps.Now())
				}
				if out, code := h.Command(t, "init", "--new-slot"); code != 0 {
					t.Fatalf("init --new-slot exited %d:\n%s", code, out)
				}
				stage(t, db, "a", "a4", stamps.Now())
				r := h.Start(t)
				r.WaitReady(soon)
				stage(t, db, "b", "b5", stamps.Now())
				settled(t, h)
				stop(t, r)
				if got := names(k.Consume(t, h.Topic)); got != "a1 b2 a3 a4 b5" {
					t.Errorf("arrived %s, want each once in the order of stamps", got)
				}
			})
		})
	}
}
