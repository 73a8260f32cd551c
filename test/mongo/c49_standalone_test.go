package mongo

// C49 Standalone server
//
// Source: estuary/connectors#749 and #755, rwynn/monstache#345, tapdata/tapdata#2663.
//
// Ideal: one line before anything begins; less than 100 kB of log in five minutes; the relay
// goes on when the server has become a replica set.
//
// Shortened: the log of the time until then, some twenty seconds, has to stay below 10 kB.

import (
	"testing"

	"github.com/walrelay/walrelay/test/mongoserver"
)

func TestC49StandaloneServerIsRefusedWithARemedyAndReadOnceItIsAReplicaSet(t *testing.T) {
	t.Parallel()
	s := newScene(t, mongoserver.Start(t, mongoserver.Options{Standalone: true}))
	s.URL = s.Mongo.URL()
	words := []string{"the server is a standalone mongod, and has neither an oplog nor transactions", "start it with --replSet", "rs.initiate()"}
	out, code := s.Command(t, "init")
	if code != 3 {
		t.Errorf("init exits %d, want 3", code)
	}
	contains(t, "init", out, append(words, "docs/runbook.md#mongo-standalone")...)
	if out, code = s.Command(t, "check"); code != 3 {
		t.Errorf("check exits %d, want 3", code)
	}
	contains(t, "check", out, "FAIL replica set: none: a standalone server", words[1])

	r := s.Start(t)
	body := r.WaitNotReady(soon, "standalone")
	contains(t, "readyz", body, append(words, "mongo-standalone")...)
	if code := s.Start(t, "--exit-on-halt").Wait(soon); code != 3 {
		t.Errorf("with --exit-on-halt it exits %d, want 3", code)
	}
	s.Mongo.BecomeReplicaSet(t)
	s.Init(t)
	s.streams(r) // it looks again every 15 s
	if n := len(r.Log()); n > 10_000 {
		t.Errorf("%d bytes of log:\n%s", n, r.Log())
	}
	s.box = s.Outbox(t)
	s.delivers(r, s.insert("a"))
}
