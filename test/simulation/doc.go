// Package simulation plays whole days of a small shop in milliseconds, to see what the
// orders that the relay offers are worth: three replicas of an application with clocks
// that are wrong, overlapping transactions in two databases, consumers that merge what
// they read and react to it. All is drawn from one seed: the same seed, the same day.
//
//	World     what happened, and why: events with stamps, commits, edges of causes
//	Relay     how the two logs are read and in which order their events go out
//	Check     which promise of the mode at hand the output breaks
//
// Three kinds of edges lead from a cause to an effect (Kind): the same flow of execution,
// a message that was handled, data that was read. Broken twins of the replica, the
// consumer and the relay must be caught by the same Check that passes the right ones.
package simulation
