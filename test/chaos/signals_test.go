package chaos

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
)

const rounds = 20

func TestTwentyTermsUnderLoadLoseAndRepeatNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t, pgserver.Shared(t, pgserver.V18), kafkaserver.Shared(t))
	for i := range rounds {
		r := s.Start(t)
		s.published(r, 200, 60*time.Second)
		s.pause(rand.N(500 * time.Millisecond))
		if code, took := r.Stop(); code != 0 || took > 10*time.Second {
			t.Fatalf("stop %d took %s and exited %d, want 0 within the grace", i, took, code)
		}
	}
	r := s.Start(t)
	if v := s.judge(r); v.Duplicates != 0 {
		t.Errorf("%d duplicates after clean stops: %v", v.Duplicates, v.Examples)
	}
}

func TestTwentyKillsUnderLoadLoseNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t, pgserver.Shared(t, pgserver.V18), kafkaserver.Shared(t))
	for range rounds {
		r := s.Start(t)
		s.published(r, 200, 60*time.Second)
		s.pause(rand.N(500 * time.Millisecond))
		r.Kill()
	}
	v := s.judge(s.Start(t))
	// What Kafka had and the database had not: at most the time between two markers
	// (200 ms) and a flush, of about 1 500 events per second, and the transaction at
	// hand. Twice that, for a busy machine.
	if limit := rounds * 1000; v.Duplicates > limit {
		t.Errorf("%d duplicates in %d kills, want at most %d", v.Duplicates, rounds, limit)
	}
}
