// Package kafkaserver starts a real Apache Kafka 4.4 in KRaft mode for tests:
// one process that is broker and controller, or three.
//
// The jars are fetched once by Maven, checked against pinned checksums and kept
// under .cache; a second run needs no network. A broker is ready after 2 to 3
// seconds:
//
//	func TestMain(m *testing.M) { kafkaserver.Main(m) }
//
//	func TestSomething(t *testing.T) {
//		t.Parallel()
//		kafka := kafkaserver.Shared(t) // one per test process
//		topic := kafka.Topic(t, 3, nil)
//	}
//
// Tests that stop, freeze or configure a broker take one of their own with
// Start. The brokers end with the test, at the latest with the test process.
//
// Needs Java 17 or newer, and Maven for the first run; "make deps" brings both.
// WALRELAY_TEST_KAFKA holds the addresses of existing brokers (comma-separated,
// no authentication) to be used by Shared instead.
package kafkaserver
