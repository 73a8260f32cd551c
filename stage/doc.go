// Package stage is for applications that write to a transactional outbox: what a
// unit of work has to say is staged in a [Buffer], and flushed in the unit's own
// database transaction by the package of the database, stage/postgres or stage/mongo.
//
//	b := outbox.Buffer()                        // one for each attempt of a unit of work
//	b.Stage(ctx, stage.Event{Route: "orders", Type: "OrderPlaced", Key: id, Payload: order})
//	outbox.Flush(ctx, postgres.Pgx(tx), b)      // the last thing before the commit
//
// # What is decided when
//
// Staging fixes what the event says: its id (UUIDv7 unless given), its stamp, its
// time, whose it is ([Identity]), the trace it belongs to, its payload as JSON, and
// whether it can be written at all: what a database would refuse is refused here,
// before it spoils a transaction. Flushing fixes the row: its own id, created_at.
//
// # What a buffer promises
//
//   - Its events are in the order of their stamps.
//   - A flush that succeeds empties it: the events are now the transaction's, and
//     share its fate. If that is rolled back they are gone, as the business change
//     is; the next attempt stages anew, with new ids and new stamps.
//   - A flush that fails leaves it as it was, so that it can be flushed again,
//     in another transaction (no database lets anything be done in one that failed).
//   - It belongs to one attempt of one unit of work. Make it where the transaction
//     begins, inside the function that is called again on a retry: an older one
//     still holds what an attempt staged that never came to its flush.
//
// # Hazards
//
//   - A commit whose answer was lost may have happened. To write the event again
//     without risk, give it an id of your own making: a row whose route and event id
//     are there already is ignored, and reported.
//   - Stamps are taken in the order of staging, transactions commit in another. A
//     reader of the log sees commit order (package hlc says what stamps know).
package stage
