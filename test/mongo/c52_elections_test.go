package mongo

// C52 Election during delivery
//
// Source: spring-projects/spring-data-mongodb#3393 (DATAMONGO-2537), debezium/debezium#7534.
//
// Ideal: nothing lost, nothing out of order, duplicates at most what was not acknowledged at
// an election, and nothing delivered that was rolled back.
//
// Shortened: an election every 6 s for 30 s instead of every 20 s for three minutes and
// more. With WALRELAY_TEST_CHAOS: every 20 s for so long, three minutes at least. One primary
// is killed in either.

import (
	"os"
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/mongoserver"
)

func TestC52ElectionsAndAKilledPrimaryLoseNothingAndKeepEveryOrder(t *testing.T) {
	t.Parallel()
	every, length := 6*time.Second, 30*time.Second
	if text := os.Getenv("WALRELAY_TEST_CHAOS"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatalf("WALRELAY_TEST_CHAOS: %v", err)
		}
		every, length = 20*time.Second, max(d, 3*time.Minute)
	}
	s := newScene(t, mongoserver.Start(t, mongoserver.Options{Nodes: 3}))
	s.Source = "after_publish: mark\nsweep_every: 2s\n"
	s.Kafka = "on_poison: park\n"
	s.Init(t)
	r := s.Start(t)
	s.streams(r)
	s.begin(30)
	killed := false
	elections := 0
	for began := time.Now(); time.Since(began) < length; elections++ {
		s.pause(every)
		if !killed && time.Since(began) > length/2 {
			killed = true
			old := s.Mongo.Primary(t)
			s.Mongo.Kill(t, old)
			s.pause(every / 2)
			s.Mongo.StartAgain(t, old)
			continue
		}
		s.Mongo.StepDown(t)
	}
	v := s.judge(r)
	t.Logf("%d elections: %s", elections, v)
	// The relay lived on: what was acknowledged it knows.
	if v.Duplicates > 0 {
		t.Errorf("%d duplicates without a crash of the relay: %v", v.Duplicates, v.Examples)
	}
	r.Eventually("no document that is not published", soon, s.pending)
	if code, _ := r.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
