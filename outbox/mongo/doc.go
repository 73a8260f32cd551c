// Package mongo is the outbox collection, its leases and its parking store on
// MongoDB: the commands behind the contracts of package outbox.
//
// Four rules hold for all of it:
//
//   - Rows are known by _id, which always has an index and is always unique. The document's own id
//     field orders rows and does nothing else.
//   - Every moment that is written or compared is the server's ($$NOW): the clock of the host
//     that the relay runs on does not matter.
//   - Writes wait for the majority (w: majority, journaled). What a claim answered is not rolled back.
//   - A call that fails half-way may be repeated as it is. Guards (state and claim token) see to
//     it that nothing is written twice, and that a claim which was taken away writes nothing.
//
// Where ctx carries a session (driver's NewSessionContext), a call takes part in its transaction.
package mongo
