package mongo

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/walrelay/walrelay/inbox"
)

// lasting are the options of the transactions of Process, whatever the client's are:
// what was committed must outlive a failover, because the offset is committed next.
func lasting() *options.TransactionOptionsBuilder {
	return options.Transaction().SetReadConcern(readconcern.Snapshot()).SetWriteConcern(writeconcern.Majority()).SetReadPreference(readpref.Primary())
}

// Process handles one record in a session and a transaction of its own and commits it,
// with write concern majority. When it returns without an error, the record is done:
// handled now or before. A session that ctx carries is left alone.
//
// A transaction that conflicted with another, or whose server went away before the
// commit (label TransientTransactionError), is run again, at most Options.Runs times in
// all, with a pause of 5 ms to 1 s in between; the handler then runs again too, so it
// must hand such errors on. While another transaction holds the mark it goes on for
// Options.Patience. Every other error ends it. The cause stays in the error, for
// errors.Is and errors.As.
//
// A commit whose answer was lost is sent again, at most Options.Runs times, which
// commits nothing twice. If it is not answered then, the transaction may have been
// committed all the same. Hand the record in again: its mark knows.
func (in *Inbox) Process(ctx context.Context, r inbox.Record, h Handler) (inbox.Outcome, error) {
	a := inbox.Attempts{Most: in.opts.Runs, Victim: victim, Busy: busy, Patience: in.opts.Patience}
	return inbox.Process(ctx, in.Inbox, r, a, func(ctx context.Context, m inbox.Message) (inbox.Outcome, error) {
		s, err := in.db.Client().StartSession()
		if err != nil {
			return inbox.Unsettled, fmt.Errorf("beginning: %w", err)
		}
		defer s.EndSession(context.WithoutCancel(ctx))
		if err := s.StartTransaction(lasting()); err != nil {
			return inbox.Unsettled, fmt.Errorf("beginning: %w", err)
		}
		outcome, err := in.handle(mongo.NewSessionContext(ctx, s), s, m, h)
		if err != nil {
			return inbox.Unsettled, err
		}
		if err := in.commit(ctx, s); err != nil {
			return inbox.Unsettled, fmt.Errorf("committing: %w", err)
		}
		return outcome, nil
	})
}

// commit may be sent several times: the server remembers what became of the session's
// last transaction.
func (in *Inbox) commit(ctx context.Context, s *mongo.Session) (err error) {
	if err := context.Cause(ctx); err != nil {
		return err // an open transaction, which the end of the session aborts; a commit that is not sent counts as one for the driver
	}
	for range in.opts.Runs {
		err = s.CommitTransaction(ctx)
		labeled, ok := errors.AsType[mongo.LabeledError](err)
		if !ok || !labeled.HasErrorLabel(unknownCommit) || ctx.Err() != nil {
			break
		}
	}
	return err
}
