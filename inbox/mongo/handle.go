package mongo

import (
	"context"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/inbox"
)

// Handler handles a message. ctx carries the session, and with it the transaction, of
// the message's mark: what is written with it counts once. The handler must not end
// that transaction; if it does, the outcome is ErrNotYours.
type Handler func(ctx context.Context, m inbox.Message) error

// Handle marks the record and runs the handler, both in the transaction whose session
// ctx carries; the caller commits, with write concern majority, or a mark can be lost
// at a failover after the offset was committed. After an error the transaction has been
// aborted, with all that the caller did in it. The error of the handler is returned as
// it is.
//
// A conflict (label TransientTransactionError) is an error like others here: the caller
// has to run its transaction again, as WithTransaction does when it is given the error,
// see Process.
func (in *Inbox) Handle(ctx context.Context, r inbox.Record, h Handler) (inbox.Outcome, error) {
	s := mongo.SessionFromContext(ctx)
	switch {
	case s == nil || !s.TransactionRunning():
		return inbox.Unsettled, fmt.Errorf("handling with a context whose session is in no transaction: begin one, and pass the context that carries it: %w", ErrNoTransaction)
	case s.Client() != in.db.Client():
		return inbox.Unsettled, fmt.Errorf("the session in the context is not of the client that the inbox in %s was made with: make an inbox for each client: %w", in.db.Name(), ErrOtherClient)
	}
	ctx, m, err := in.Receive(ctx, r)
	if err != nil {
		return inbox.Unsettled, err
	}
	return in.handle(ctx, s, m, h)
}

func (in *Inbox) handle(ctx context.Context, s *mongo.Session, m inbox.Message, h Handler) (inbox.Outcome, error) {
	return inbox.Apply(ctx, in.Inbox, store{in.marks}, s, m, func(ctx context.Context, s *mongo.Session, m inbox.Message) error {
		err := h(ctx, m)
		if err == nil && !s.TransactionRunning() {
			return fmt.Errorf("the handler of message %s ended its transaction: %w", m.ID, ErrNotYours)
		}
		return err
	})
}

// store marks in the transaction of a session.
type store struct{ marks *mongo.Collection }

func (s store) Mark(ctx context.Context, session *mongo.Session, route, id string) (bool, error) {
	return mark(mongo.NewSessionContext(ctx, session), s.marks, route, id)
}

// rollbackWithin bounds a rollback, which is also due when the caller's context
// has ended.
const rollbackWithin = 5 * time.Second

func (store) Rollback(ctx context.Context, session *mongo.Session) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackWithin)
	defer cancel()
	// When it fails, the transaction was over, or the server ends it by itself: nothing
	// commits it any more, since the session knows that it was given up.
	_ = session.AbortTransaction(ctx)
}
