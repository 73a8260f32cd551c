// Package protocol holds what walrelay believes about Postgres' logical
// replication, as tests against real servers of every supported version. One
// file is one fact (V1 … V12), told by a bare client that has none of walrelay's
// code; where walrelay has a rule because of the fact, a second test in the file
// leads walrelay's stream through the same situation.
//
// When one of the bare tests fails on a new version of Postgres, the fact has
// changed: look at the rule before touching the test.
package protocol
