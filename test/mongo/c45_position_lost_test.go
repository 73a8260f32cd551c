package mongo

// C45 Resume token older than the oplog
//
// Source: estuary/connectors#5042, johanhaleby/occurrent#77, apache/flink-cdc#583, mongodb/mongo-kafka#69, DBZ-6455.
//
// Ideal: a halt that says how the history was lost, not ready, and never a start at the
// present by itself; the catch-up from the collection is documented and works.
//
// Shortened: an oplog of 10 MB instead of 990.

import (
	"testing"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/test/mongoserver"
)

func TestC45PositionOlderThanTheOplogHaltsAndCatchUpPublishesWhatIsPending(t *testing.T) {
	t.Parallel()
	s := newScene(t, mongoserver.Start(t, mongoserver.Options{OplogMB: 10}))
	s.Source = "after_publish: mark\nsweep_every: 1s\n"
	s.Kafka = "on_poison: park\n"
	s.Init(t)
	r := s.Start(t)
	s.streams(r)
	first := s.insert("a")
	s.delivers(r, first)
	r.Eventually("the mark", soon, s.pending)
	if code, _ := r.Stop(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	second, third := s.insert("a"), s.insert("b")
	s.Mongo.OutrunOplog(t)

	r = s.Start(t)
	body := r.WaitNotReady(soon, `"halted"`)
	contains(t, "readyz", body, "the oplog no longer reaches back to the remembered position", "on_gap: catch_up", "mongo-position-lost")
	out, code := s.Command(t, "check")
	if code == 0 {
		t.Error("check finds nothing wrong")
	}
	contains(t, "check", out, "FAIL position: the oplog", "on_gap: catch_up")
	if code, _ := r.Stop(); code != 0 {
		t.Errorf("a halted relay that is told to end exits %d", code)
	}
	if code := s.Start(t, "--exit-on-halt").Wait(soon); code != 4 {
		t.Errorf("with --exit-on-halt it exits %d, want 4", code)
	}
	if n := len(s.arrived()); n != 1 {
		t.Fatalf("beside a gap it published: %d records", n)
	}

	s.Stream = "on_gap: catch_up\n"
	r = s.Start(t)
	s.delivers(r, first, second, third)
	s.state(r, event.StateStreaming)
	s.delivers(r, first, second, third, s.insert("b"))
	r.Eventually("no document that is not published", soon, s.pending)
	r.WaitReady(soon)
	contains(t, "the log", r.Log(), "were deleted in the transaction that inserted them")
}
