package mongo

import (
	"context"
	"errors"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"github.com/walrelay/walrelay/outbox"
)

const (
	// farewell bounds what is said to a server about a transaction that is given up.
	farewell = 2 * time.Second
	// tryAgain paces a transaction that met another one.
	tryAgainFirst = 2 * time.Millisecond
	tryAgainMost  = 250 * time.Millisecond
)

// transact runs f in a transaction, and again where the server says that it met another one or
// that the answer to its commit is not known; f therefore must set what it tells every
// time. Unlike the driver's own way it keeps to ctx also while it commits: a server that says
// nothing must not hold the relay.
//
// A server that is no member of a replica set has no transactions: there f runs without, atomic is
// false, and it has to put things in an order in which nothing is lost wherever it is cut short.
//
// f's errors are to be given back as they came from the driver. doing completes the
// sentence "… failed".
func (d *Database) transact(ctx context.Context, doing string, f work) error {
	ctx, cancel := context.WithTimeout(ctx, silenceTimeout)
	defer cancel()
	return d.classify(d.repeat(ctx, f), doing)
}

// work is what is done in a transaction.
type work func(ctx context.Context, db *driver.Database, atomic bool) error

func (d *Database) repeat(ctx context.Context, f work) error {
	client, err := d.connect(ctx)
	if err != nil {
		return err
	}
	session, err := client.StartSession()
	if err != nil {
		return err
	}
	// Nothing that the client's URL says matters.
	db := client.Database(d.o.Database, options.Database().SetReadPreference(readpref.Primary()).SetReadConcern(readconcern.Local()).SetWriteConcern(journaledMajority))
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
		defer cancel()
		session.EndSession(end)
	}()
	opt := options.Transaction().SetReadConcern(readconcern.Snapshot()).SetWriteConcern(journaledMajority).SetReadPreference(readpref.Primary())
	alone := false
	for n := 1; ; n++ {
		switch {
		case alone:
			err = f(ctx, db, false)
		default:
			if err = session.StartTransaction(opt); err != nil {
				return err
			}
			if err = f(driver.NewSessionContext(ctx, session), db, true); err != nil {
				abort(ctx, session)
			} else {
				err = commit(ctx, session)
			}
		}
		if isAlone(err) && !alone {
			alone = true
			continue
		}
		if err == nil || !passing(err) || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(outbox.Backoff(n, tryAgainFirst, tryAgainMost)):
		case <-ctx.Done():
			return err
		}
	}
}

func abort(ctx context.Context, session *driver.Session) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	_ = session.AbortTransaction(ctx) // the server does it by itself after a minute
}

// commit says it until it is answered.
func commit(ctx context.Context, session *driver.Session) error {
	for n := 1; ; n++ {
		err := session.CommitTransaction(ctx)
		if err == nil || ctx.Err() != nil || !labelled(err, "UnknownTransactionCommitResult") {
			return err
		}
		select {
		case <-time.After(outbox.Backoff(n, tryAgainFirst, tryAgainMost)):
		case <-ctx.Done():
			return err
		}
	}
}

// isAlone: the server answers that it is no member of a replica set.
func isAlone(err error) bool {
	var e driver.ServerError
	return errors.As(err, &e) && e.HasErrorCodeWithMessage(20, "replica set")
}

// passing errors are those of a transaction that met another one, or whose server left. Of
// two that make the same document one is told that it is there, and finds it next time.
func passing(err error) bool {
	return labelled(err, "TransientTransactionError") || driver.IsDuplicateKeyError(err)
}

func labelled(err error, label string) bool {
	var e interface{ HasErrorLabel(label string) bool }
	return errors.As(err, &e) && e.HasErrorLabel(label)
}
