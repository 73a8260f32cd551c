package mongo

// C50 Rights too narrow
//
// Source: estuary/connectors#985, debezium-design-documents#11.
//
// Ideal: the missing action and the namespace are named, nothing is read in part, and after
// the grant the relay goes on from the remembered position without a loss.

import (
	"testing"

	"github.com/walrelay/walrelay/test/mongoserver"
)

func TestC50MissingRightsAreNamedAndNothingIsLostOnceTheyAreGranted(t *testing.T) {
	t.Parallel()
	s := newScene(t, mongoserver.Start(t, mongoserver.Options{Auth: true}))
	s.Init(t) // by an administrator
	// Both on one collection is enough: no right on the database, none on the cluster.
	with := func(outbox ...string) []mongoserver.Privilege {
		list := []mongoserver.Privilege{{Database: s.Database, Collection: "outbox", Actions: outbox}}
		for _, book := range []string{"walrelay_sources", "walrelay_parked", "walrelay_leases"} {
			list = append(list, mongoserver.Privilege{Database: s.Database, Collection: book, Actions: []string{"find", "insert", "update", "remove"}})
		}
		return list
	}
	s.Mongo.AddRole(t, "walrelay", with("find", "changeStream")...)
	s.Mongo.AddUser(t, "relay", "correct horse", mongoserver.Role{Name: "walrelay", Database: "admin"})
	s.URL = s.Mongo.URLAs("relay", "correct horse")
	r := s.Start(t)
	s.streams(r)
	ids := []string{s.insert("a")}
	s.delivers(r, ids...)

	// Revoked while it runs; at a start further below.
	for _, lacks := range []struct{ has, not string }{{"find", "changeStream"}, {"changeStream", "find"}} {
		s.Mongo.SetRole(t, "walrelay", with(lacks.has)...)
		ids = append(ids, s.insert("a"), s.insert("b"))
		body := r.WaitNotReady(soon, "mongo-rights")
		contains(t, "readyz", body, "user relay has no right to "+lacks.not+" on "+s.Database+".outbox", "grantPrivilegesToRole")
		out, code := s.Command(t, "check")
		if code != 3 {
			t.Errorf("check exits %d, want 3", code)
		}
		contains(t, "check", out, "FAIL rights on outbox: without "+lacks.not, "grantPrivilegesToRole")
		s.Mongo.SetRole(t, "walrelay", with("find", "changeStream")...)
		s.delivers(r, ids...)
		r.WaitReady(soon)
	}
	if code, _ := r.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	s.Mongo.SetRole(t, "walrelay", with("find")...)
	if code := s.Start(t, "--exit-on-halt").Wait(soon); code != 3 {
		t.Errorf("with --exit-on-halt it exits %d, want 3", code)
	}
}
