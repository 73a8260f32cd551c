// Package mongostream follows one collection of a MongoDB replica set: it prepares
// the collection, judges whether the position that is remembered can be gone on from, and streams
// the documents that were inserted.
//
// # Set-up
//
// [Plan] says what is missing, [Apply] makes it, [Print] writes all of it as a script for
// the shell. The position comes last, at the end of the log as it is then: what was inserted
// before is not the stream's. [Check] reports every precondition for people. Both
// judge one picture of the server (type inventory).
//
// # Where to start
//
// Unlike Postgres the server keeps nothing for us: the position is a resume token in a
// document of ours ([Record]), and the oplog is a ring that is cut past it when nobody reads
// for long ([Monitor]). The record carries an epoch, so that a reader that was taken for dead cannot
// move it any more, and a lease, so that one reads at a time. [Assess] answers a place to
// go on from, or which gap there is.
//
// # Positions
//
// A position is the hex digits of a token, which sort bytewise as the stream does. A
// moment stands between them as [AtTime]: for comparing, never to be sent to a server. What is
// below a position was committed before.
//
// # Time limits
//
// The client has none over all its operations: the driver would apply it to the reading of the stream as
// well, and a stream that is cut off in the middle of an answer has lost it. Short commands have
// Options.WireTimeout each; reading has no limit, since a server that reads through a backlog may be silent
// for minutes.
//
// # Rights
//
// find and changeStream on the collection suffice to read, hello and connectionStatus take none. Every
// figure that takes more is absent without it, and [Check] says once what it would take.
//
// # Errors
//
// Errors are *event.Error. [Classify] is the one place that gives an error of the server, the network
// or the driver its class. No text of an error holds the URL or a document.
package mongostream
