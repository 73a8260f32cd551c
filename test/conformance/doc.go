// Package conformance holds the promises of outbox.Table, outbox.Leases and outbox.Parking, and of
// relay.Source, as tests that run over every implementation: one suite, two databases. What
// holds for one database alone is tested beside its implementation.
//
// A promise sees a table as a [yard]: rows are put there and looked at directly, as writers,
// operators and foreign pollers would, never through what is tested.
//
// Each test runs a second time over a backend with one fault, and has to fail there: see faults_test.go, where a
// new test needs an entry.
package conformance
