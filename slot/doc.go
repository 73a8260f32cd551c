// Package slot reads the log of one Postgres database: it prepares publication
// and slot, judges whether the position that is remembered and the slot that is
// there belong together, and streams what was committed.
//
// # Set-up
//
// [Plan] says what is missing, [Apply] makes it, [Print] writes all of it as a
// script. The order is fixed: tables, bookkeeping, publication, and the slot
// last. Decoding sees the catalog as it was when a row was written, so a
// publication that is younger than the slot is invisible to the rows between
// the two, for ever; and a start that fails before the slot leaves no slot
// behind to fill the disk.
//
// # Preconditions
//
// [Check] reports every precondition for people; [VerifyForStream] is the part
// of it that must hold at each connect, [CheckPublication] the part that is
// looked at on a timer while streaming. All three judge one picture of the
// server (type inventory) with the same pure functions.
//
// # Where to start
//
// The server remembers confirmed_flush_lsn in the slot, and walrelay remembers
// the same in its marker, a row of the bookkeeping schema. The slot's value goes
// back when Postgres restarts and vanishes with the slot; the marker travels
// with the database, also into a dump. [Judge] compares the two and either
// answers a position or says which gap it sees. It relies on this order: Kafka
// has acknowledged, rows are marked, the marker is written, and only then is the
// slot told. So the slot is never ahead of the marker, unless someone else moved
// it, or the server was shutting down (see Judge).
//
// # Connections
//
// One parsed connection string makes both kinds of connection, with pinned
// session settings, so that a role's or a database's defaults cannot change
// what the server prints. A pooler in front of the server cannot carry
// replication and is refused by name.
//
// # Errors
//
// Errors are *event.Error. [Classify] is the one place that gives a server's or
// a network's error its class.
package slot
