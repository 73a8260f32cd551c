// Package mongo holds the real relay against real replica sets and a real Kafka:
// ends, kills, elections, drops, lost positions, missing rights, a standby, and the
// commands an operator gives.
//
// What a change stream delivers while relays are stopped and killed under load is in
// signals_test.go, elections in elections_test.go, drops in drops_test.go, idle and
// lost positions in place_test.go, what keeps a relay from beginning in
// preconditions_test.go, the standby in standby_test.go, commands in
// commands_test.go. Field cases of the trackers of other relays, C45 to C52, have
// a file each.
//
// WALRELAY_TEST_CHAOS sets how long elections go on (30 s).
package mongo
