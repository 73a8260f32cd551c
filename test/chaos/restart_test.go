package chaos

import (
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
)

func TestPostgresRestartsLoseAndRepeatNothing(t *testing.T) {
	t.Parallel()
	for _, v := range []pgserver.Version{pgserver.V15, pgserver.V18} {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			pg := pgserver.Start(t, pgserver.Options{Version: v})
			s := newScene(t, pg, kafkaserver.Shared(t))
			r := s.Start(t)
			s.published(r, 200, 60*time.Second)
			for i := range 6 {
				mode := pgserver.Fast
				if i%2 == 1 {
					mode = pgserver.Immediate
				}
				pg.Restart(t, mode)
				began := time.Now()
				s.published(r, 50, 15*time.Second)
				t.Logf("restart %d (%s): events again after %s", i, mode, time.Since(began).Round(10*time.Millisecond))
				s.pause(time.Second)
			}
			for range 3 {
				s.Exec(t, `select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = $1 and active`, s.Slot)
				began := time.Now()
				s.published(r, 50, 15*time.Second)
				t.Logf("walsender terminated: events again after %s", time.Since(began).Round(10*time.Millisecond))
			}
			if v := s.judge(r); v.Duplicates != 0 {
				t.Errorf("%d duplicates: %v", v.Duplicates, v.Examples)
			}
			if code, _ := r.Stop(); code != 0 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

func TestPostgresStopsAtOnceBesideAnIdleRelay(t *testing.T) {
	t.Parallel()
	for _, v := range []pgserver.Version{pgserver.V15, pgserver.V18} {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			pg := pgserver.Start(t, pgserver.Options{Version: v})
			s := newScene(t, pg, kafkaserver.Shared(t))
			r := s.Start(t)
			s.published(r, 50, 60*time.Second)
			s.end()
			s.ended.Wait()
			s.pause(time.Second)
			took := pg.Stop(t, pgserver.Fast)
			t.Logf("the server stopped in %s", took)
			if took > 2*time.Second {
				t.Errorf("the server took %s to stop, want less than 2 s", took)
			}
			// The relay is restarted too while the server is down: the next one must
			// not take the end of the log, which the shutdown confirmed, for a gap.
			if code, _ := r.Stop(); code != 0 {
				t.Errorf("exit code %d while the server is down", code)
			}
			pg.StartAgain(t)
			if v := s.judge(s.Start(t)); v.Duplicates != 0 {
				t.Errorf("%d duplicates: %v", v.Duplicates, v.Examples)
			}
		})
	}
}
