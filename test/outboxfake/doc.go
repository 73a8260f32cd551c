// Package outboxfake holds an outbox in memory: a table, its leases and its parking
// store, with the semantics of the contracts in package outbox. Time is time.Now, so
// that a testing/synctest bubble decides it.
//
// It is written to be read: the obvious twin of outbox/postgres, for tests of those
// who call the contracts.
package outboxfake
