// Package postgres keeps the marks of an inbox in a Postgres table, in the
// transaction of the handler: a pgx.Tx or a *sql.Tx. The page of package inbox
// says what that gives.
//
// Process is what a consumer calls for each record: it opens a transaction, marks,
// runs the handler and commits, and does all of it again when Postgres gave it up
// for a serialization failure or a deadlock. Handle does the middle part in a
// transaction that the caller opened, for instance to take several records at once.
//
// The handler gets the transaction of the mark as its argument. There is no
// setting that would put the mark on another connection.
//
//	create table inbox (
//	    inbox_route  text,
//	    message_id   text,
//	    processed_at timestamptz,
//	    primary key (inbox_route, message_id))
//
// DDL prints it with what Forget needs. The primary key is what decides between
// two consumers: on a table without it every record fails with SQLSTATE 42P10,
// none is handled twice.
package postgres
