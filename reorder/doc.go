// Package reorder puts events of one or more logs into the order of their Hybrid
// Logical Clock stamps, as far as that can be known without waiting for ever. It is
// pure: no clock, no goroutine, no lock. Its caller (package relay) locks, and tells it
// what the sources said.
//
//	readings, commits ─► Progress ─► watermark of one source ─┐ minimum W
//	events of a source ─► Buffer.Add ─► heap by place ─► Pop: everything below W
//
// # Why the output is sorted
//
// Three assumptions, each with a figure that shows when it is wrong:
//
//	A1  an event commits within T of the moment it was stamped        (Bounds.Transaction)
//	A2  no producer's clock is more than ε behind its database server (Bounds.Skew)
//	A3  every commit before the time τ of the server has been taken   (Progress)
//
// An event that has not come yet was committed at or after τ, so stamped at or after
// τ-T, so with a stamp of at least τ-T-ε. That is the watermark of its source; W is the
// least of all sources. Everything below W can go: what comes later is not smaller. When
// an assumption is wrong an event comes late: its stamp is below what was already
// released. It is released at once and counted, never dropped, and its stamp is not touched.
//
// τ comes from the source's own server, never from the relay: by the relay's clock a
// source that is stalled would be declared complete.
//
// # What has no usable stamp
//
// An event without a stamp, or with one further than a drift beyond its commit, is
// placed by its commit time. It waits for nothing that is later than its commit, and
// never moves the released mark beyond it: a forged stamp cannot hold anything up.
//
// # Within a key, the commit order
//
// Stamps do not know what a transaction read: in one source the order of commits is the
// stronger one. Items with WithinKey keep it among those of their source and key, and use
// stamps for the rest; heads.go has the proof that this is the merge by heads, and what
// it cannot do.
//
// # Memory, and why two sources do not stop each other
//
// Each source has a budget of bytes (Room). A source without room must be made to wait
// only while another one holds the minimum (Gated says whether it holds it itself): the
// one that holds the minimum moves W by nothing but reading on, so making it wait would be
// for ever. Exactly one attached source is gated at any time, so one of them always reads.
// When it has no room, either the budget is exceeded or Relieve gives up order: the
// caller's choice.
//
// A source that is stalled for too long is detached: the others no longer wait for it, and
// what it brings when it returns is late and counted.
//
// # What it does not promise
//
// The order is that of one run: after a crash what was not yet confirmed is read again and
// appears below the maximum of the run before, as duplicates. The released order is not the
// order of the log, so the position to confirm is that before the oldest event which is
// still held (package ack). And stamps do not see reads: an effect written shortly after
// its cause by another replica whose clock is behind may carry the smaller stamp.
package reorder
