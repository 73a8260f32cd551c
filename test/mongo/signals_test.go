package mongo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/test/mongoserver"
)

const rounds = 20

func TestTwentyTermsUnderLoadLoseAndRepeatNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t, mongoserver.Shared(t))
	s.Init(t)
	s.begin(40)
	for i := range rounds {
		r := s.Start(t)
		s.published(r, 100)
		s.pause(rand.N(500 * time.Millisecond))
		if code, took := r.Stop(); code != 0 || took > 10*time.Second {
			t.Fatalf("stop %d took %s and exited %d, want 0 within the grace", i, took, code)
		}
	}
	if v := s.judge(s.Start(t)); v.Duplicates != 0 {
		t.Errorf("%d duplicates after clean stops: %v", v.Duplicates, v.Examples)
	}
}

// With marks, what Kafka has is not pending when the relay is back, and the look-up below
// the line that a start draws cuts the duplicates: compared with a relay that leaves it out.
// The lease of a killed relay has to run out first: it is shorter here than it usually is.
func TestTwentyKillsUnderLoadLoseNothingAndTheLookUpCutsDuplicates(t *testing.T) {
	t.Parallel()
	var with, without float64 // duplicates per kill
	t.Run("runs", func(t *testing.T) {
		for _, run := range []struct {
			name  string
			kills int
			env   []string
			out   *float64
		}{
			{"with", rounds, nil, &with},
			{"without", rounds / 2, []string{"WALRELAY_TEST_NO_LOOK_UP=1"}, &without},
		} {
			t.Run(run.name, func(t *testing.T) {
				t.Parallel()
				s := newScene(t, mongoserver.Shared(t))
				s.Stream = "lease: 3s\n"
				s.Source = "after_publish: mark\nsweep_every: 2s\n"
				s.Kafka = "on_poison: park\n"
				s.Env = run.env
				s.Init(t)
				s.begin(40)
				for range run.kills {
					r := s.Start(t)
					s.published(r, 100)
					s.pause(rand.N(500 * time.Millisecond))
					r.Kill()
				}
				r := s.Start(t)
				*run.out = float64(s.judge(r).Duplicates) / float64(run.kills)
				r.Eventually("no document that is not published", soon, s.pending)
			})
		}
	})
	t.Logf("duplicates per kill: %.1f with the look-up, %.1f without", with, without)
	if with >= without {
		t.Error("the look-up does not cut duplicates")
	}
}

// pending is nil when every document that is left is published.
func (s *scene) pending() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	n, err := s.box.CountDocuments(ctx, bson.D{{Key: "status", Value: bson.D{{Key: "$ne", Value: "published"}}}})
	if err == nil && n > 0 {
		err = fmt.Errorf("%d documents", n)
	}
	return err
}
