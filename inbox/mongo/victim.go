package mongo

import (
	"errors"

	"go.mongodb.org/mongo-driver/v2/mongo"
)

// The labels that a server or the driver puts on errors in transactions.
//
// Source: MongoDB specifications, transactions/transactions.md, "Error Labels".
const (
	transient     = "TransientTransactionError"
	unknownCommit = "UnknownTransactionCommitResult"
)

// writeConflict is the server's code of a write that another transaction was quicker
// with.
const writeConflict = 112

// victim reports whether the transaction came to nothing because of what ran beside it,
// or because the server that had it is gone, so that it may be run again as a whole.
func victim(err error) bool {
	labeled, ok := errors.AsType[mongo.LabeledError](err)
	return ok && labeled.HasErrorLabel(transient)
}

func conflict(err error) bool {
	coded, ok := errors.AsType[mongo.ServerError](err)
	return ok && coded.HasErrorCode(writeConflict)
}

// busy reports whether another open transaction holds the mark.
func busy(err error) bool {
	_, ok := errors.AsType[busyError](err)
	return ok
}
