// Package mongo holds the real relay against real replica sets and a real Kafka.
//
// What arrives while relays are stopped and killed under load is in signals_test.go,
// documents that their own transaction deletes in transactions_test.go, the standby in
// standby_test.go, the commands of an operator in commands_test.go. Field cases of the
// trackers of other relays have a file each: lost positions, drops, quiet collections,
// standalone servers, rights, UUIDs and elections.
//
// WALRELAY_TEST_CHAOS sets how long elections go on (30 s), and makes the foreign writes
// beside an idle collection 1 GB.
package mongo
