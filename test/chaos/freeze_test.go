package chaos

import (
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
)

func TestFrozenBrokerCostsNoConnectionNoMemoryAndNoDuplicate(t *testing.T) {
	t.Parallel()
	pg := pgserver.Start(t, pgserver.Options{Version: pgserver.V18, Settings: map[string]string{"wal_sender_timeout": "3s"}})
	k := kafkaserver.Start(t, kafkaserver.Options{})
	s := newScene(t, pg, k)
	r := s.Start(t)
	s.published(r, 500, 60*time.Second)
	pid := s.ReadSlot(t).PID
	confirmed := s.ReadSlot(t).Confirmed
	k.Pause(t)
	r.WaitNotReady(15*time.Second, "kafka")
	var before int64
	for began := time.Now(); time.Since(began) < 60*time.Second; {
		if before == 0 && time.Since(began) > 40*time.Second {
			before, _ = r.RSS() // by now all that may be in flight is
		}
		s.pause(time.Second)
		if now := s.ReadSlot(t); now.PID != pid {
			t.Fatalf("walsender %d became %d after %s of a frozen broker", pid, now.PID, time.Since(began))
		}
		if code, _, err := r.Get("/healthz"); err != nil || code != 200 {
			t.Fatalf("liveness is %d %v while the broker is frozen", code, err)
		}
	}
	after, peak := r.RSS()
	if after > before+8<<20 || peak > 96<<20 {
		t.Errorf("memory went from %d to %d MiB (peak %d), want it flat and below 96 MiB", before>>20, after>>20, peak>>20)
	}
	t.Logf("RSS %d MiB 40 s into the freeze, %d MiB at its end, peak %d MiB; confirmed %s then %s", before>>20, after>>20, peak>>20, confirmed, s.ReadSlot(t).Confirmed)
	k.Continue(t)
	r.WaitReady(30 * time.Second)
	if v := s.judge(r); v.Duplicates != 0 {
		t.Errorf("%d duplicates: %v", v.Duplicates, v.Examples)
	}
	if now := s.ReadSlot(t); now.PID != pid {
		t.Errorf("walsender %d became %d", pid, now.PID)
	}
}
