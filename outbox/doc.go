// Package outbox is the table itself: outcomes are written back to its rows, rows
// that the log does not bring are claimed and published, events that cannot be
// published are put aside.
//
// The package holds what is the same for every database; what a database does is
// behind the contracts [Table], [Leases] and [Parking], implemented by
// outbox/postgres.
//
//   - [Scribe] stands between a log source and the relay: acknowledgement, then
//     mark, then confirm.
//   - [Poller] is a source that claims rows: capture: poll, the catch-up before the
//     log, and the sweep beside it are its gears.
//   - [Gate] is the set of held keys: a key whose oldest unfinished event waits for
//     a human or for its next attempt.
//
// The database's clock is the only one that is ever written or compared with a
// column; our own, monotonic, decides only when to stop.
package outbox
