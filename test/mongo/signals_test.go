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
func TestTwentyKillsUnderLoadLoseNothingAndTheLookUpCutsDuplicates(t *testing.T) {
	t.Parallel()
	duplicates := map[string]int{}
	t.Run("runs", func(t *testing.T) {
		for name, env := range map[string][]string{"with": nil, "without": {"WALRELAY_TEST_NO_LOOK_UP=1"}} {
			t.Run(name, func(t *testing.T) {
				s := newScene(t, mongoserver.Shared(t))
				s.Source = "after_publish: mark\nsweep_every: 2s\n"
				s.Kafka = "on_poison: park\n"
				s.Env = env
				s.Init(t)
				s.begin(40)
				for range rounds {
					r := s.Start(t)
					s.published(r, 100)
					s.pause(rand.N(500 * time.Millisecond))
					r.Kill()
				}
				r := s.Start(t)
				duplicates[name] = s.judge(r).Duplicates
				r.Eventually("no document that is not published", soon, s.pending)
			})
		}
	})
	t.Logf("duplicates in %d kills: %v", rounds, duplicates)
	if duplicates["with"] >= duplicates["without"] {
		t.Errorf("the look-up does not cut duplicates: %v", duplicates)
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
