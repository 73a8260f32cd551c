// Package pgserver starts real Postgres servers for tests.
//
// Programs of four pinned versions are fetched once, checked against pinned
// checksums and kept under .cache; a second run needs no network. A new server
// is a copy of a prepared data folder and is ready in well under a second:
//
//	func TestMain(m *testing.M) { pgserver.Main(m) }
//
//	func TestSomething(t *testing.T) {
//		t.Parallel()
//		srv := pgserver.Shared(t, pgserver.V18) // one per test process and version
//		url := srv.URL(srv.NewDatabase(t))      // one database per test
//	}
//
// Tests that stop, freeze or configure a server take one of their own with
// Start. Everything that is started ends with the test, at the latest with the
// test process, also when that is killed. Postgres does not run as root: under
// root the server runs as the user postgres or nobody.
//
// What stands beside a server in real life can stand beside one of these:
// [Server.Standby] makes a physical standby, which may be synchronous and can be
// promoted; a [Forward] is an address that fails over; [Server.Pooler] is a
// PgBouncer in transaction mode.
//
// WALRELAY_TEST_PG15 … WALRELAY_TEST_PG18 hold the URL of an existing server
// (a superuser, wal_level=logical) to be used by Shared instead.
package pgserver
