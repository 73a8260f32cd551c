package mongo

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/stage"
)

// ErrNoTransaction is what an operation wraps that needs a transaction and was
// given a context without one.
var ErrNoTransaction = stage.ErrNoTransaction

// ErrOtherClient is what an operation wraps whose session belongs to another client
// than the outbox: as with a client that picks a database for each tenant. Stamps of
// one clock would then stand in one database and its mark in another, so that a
// restart could begin below stamps that are out. Open an outbox for each client, all
// with the process's one clock.
var ErrOtherClient = errors.New("session of another client")

// sameClient refuses a session that does not belong to db.
func sameClient(ctx context.Context, db *mongo.Database) error {
	if s := mongo.SessionFromContext(ctx); s != nil && s.Client() != db.Client() {
		return fmt.Errorf("the session in the context is not of the client that %s was opened with: open an outbox for each client and keep to it: %w", db.Name(), ErrOtherClient)
	}
	return nil
}

// inTransaction says why the context has no open transaction of db's client; nil when
// it has one.
func inTransaction(ctx context.Context, db *mongo.Database) error {
	if err := sameClient(ctx, db); err != nil {
		return err
	}
	const begin = "begin one (mongo.Session.WithTransaction does), make the business change in it, and pass the context that it gives you"
	switch s := mongo.SessionFromContext(ctx); {
	case s == nil:
		return fmt.Errorf("the context has no session: %s: %w", begin, ErrNoTransaction)
	case !s.TransactionRunning():
		return fmt.Errorf("the session in the context is not inside of a transaction, or that is over: %s: %w", begin, ErrNoTransaction)
	}
	return nil
}
