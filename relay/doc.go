// Package relay is the corridor that joins the rooms: it takes batches from a
// source, has each event made into a record, hands it to the publisher, and
// confirms to the source what the broker has acknowledged.
//
//	          feeder (one per source)                     results
//	Source.Next ─► Router.Route ─► Publisher.Publish ─► … ─► ack.Window.Done
//	    ▲                │                                        │
//	    │                └─ ack.Window.Open/Add/Close             ▼
//	    └────────── Source.Confirm ◄── committer ◄──────── ack.Window.Low
//
// Goroutines: one feeder per source, one committer. Results come on the
// publisher's goroutines and only touch atomics. Nothing on the path of an
// event takes a lock or starts a goroutine.
//
// End: the context is cancelled, each feeder lets its source finish the
// transaction at hand, the publisher flushes within the grace, the committer
// confirms a last time, the sources close, the publisher closes.
package relay
