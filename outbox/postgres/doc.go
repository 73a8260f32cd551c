// Package postgres is the outbox table, its leases and its parking store on
// Postgres: the SQL behind the contracts of package outbox.
//
// Three rules hold for all of it:
//
//   - A call is one short transaction, as a rule in one round trip. It is opened as
//     READ COMMITTED whatever the database's default is, pins how values are printed
//     for itself alone, and leaves no state in the session: a pooler in transaction
//     mode may stand between, and no statement is prepared under a name.
//   - Rows are locked in the order of their ids where somebody could wait for the lock,
//     and are skipped when locked where that is enough.
//   - Values are read in the text form and copied as they came: the bytes are those that
//     the log's decoding prints.
//
// What the SQL may use is what the table has: its real columns are read once.
package postgres
