// Package mongo keeps the marks of an inbox in a MongoDB collection, in the
// transaction of the handler. It needs a replica set. The page of package inbox says
// what that gives.
//
// Process is what a consumer calls for each record: it opens a session and a
// transaction, marks, runs the handler and commits, and does all of it again when the
// transaction conflicted with another. Handle does the middle part in a transaction
// that the caller opened, for instance to take several records at once.
//
// The handler gets a context that carries the session of the mark: what it writes with
// that context counts once, what it writes with another one is outside.
//
//	inbox: {_id: "8:payments|0198f3a0-…", inbox_route: "payments", message_id: "0198f3a0-…", tenant_id: null, processed_at: ISODate}
//
// The _id is the number of characters of the route, the route and the message id, which
// no two marks share; no other index decides. [Init] makes the collection, and the
// index that Forget reads. Marks are as forze applications write them.
//
// A database transaction of MongoDB that meets another one does not wait, it fails. So
// a consumer that has the same record as another runs its transaction again until the
// other has ended (Options.Patience); its handler does not run meanwhile. A consumer that
// dies within its handler leaves a transaction that the server gives up after 60 to 90 s
// by default (transactionLifetimeLimitSeconds): until then the record waits.
package mongo
