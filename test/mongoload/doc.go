// Package mongoload writes an outbox collection as a busy application does:
// several writers, transactions of several documents, some inserted and deleted
// in one transaction, some rolled back, and it lives through elections.
//
// What was committed is what the database says: each transaction leaves a
// document in a ledger beside the outbox, with the events that it wrote. Numbers
// of a key are drawn inside the transaction from a document of the key's, so two
// transactions that share a key conflict, and the numbers follow the commits.
package mongoload
