// Package ack turns acknowledgements that arrive in any order into the one
// position that is safe to confirm.
//
// A Window is a ring of entries in log order, one per transaction. Each entry
// counts what is still under way:
//
//	pending = 1 (still open: its commit was not read yet) + events without a result
//
// Low is the end of the newest entry below which every pending is zero:
//
//	head ≤ tail; entries in [head, tail) are unconfirmed; Low = end(head-1)
//
// so that a confirmed position can never pass an event that the broker has not
// acknowledged, and no arithmetic is ever done on positions.
//
// There is no lock and no allocation: one goroutine opens entries (the feeder),
// one takes Low (the committer), any number call Done.
package ack
