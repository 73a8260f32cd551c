package mongo

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/stage"
)

// Flush writes what is staged in b and empties b. Call it last in the transaction,
// and once: from here to the commit, another transaction that raises the same mark is
// sent back. ctx is the one that the driver gives to the callback of a transaction, or
// that mongo.NewSessionContext makes; without an open transaction it is refused with
// [ErrNoTransaction], unless Autocommit allows it, and with a session of another client
// with [ErrOtherClient]. After an error b is as it was, and the transaction has to be
// aborted. With nothing staged it does nothing, and does not look at ctx.
//
// An error of the driver is wrapped with its labels: returned from the callback of
// WithTransaction, a conflict (label TransientTransactionError) leads to another
// attempt, which has to begin with a buffer of its own.
func (x *Outbox) Flush(ctx context.Context, b *stage.Buffer) (Result, error) {
	var res Result
	err := b.Flush(func(events []stage.Staged) error {
		alone := false // no transaction
		if err := inTransaction(ctx, x.db); err != nil {
			alone = errors.Is(err, ErrNoTransaction) && x.o.Autocommit && x.o.Form != DocumentsDeleted
			if !alone {
				return err
			}
		}
		res.Mark = events[len(events)-1].Stamp
		batch, err := x.documents(events)
		if err != nil {
			return err
		}
		write := x.write
		if alone {
			write = x.writeAlone
		}
		res.Ignored, err = write(ctx, batch)
		res.Written = len(events) - len(res.Ignored)
		return err
	})
	if err != nil {
		return Result{}, fmt.Errorf("flushing to outbox %s.%s: %w", x.db.Name(), x.o.Collection, err)
	}
	return res, nil
}

// batch is what one flush writes.
type batch struct {
	events []stage.Staged // all that were staged
	// What is left of them when those that are there are taken out; the slices run
	// beside each other.
	left []stage.Staged
	ids  []bson.ObjectID
	docs []bson.Raw
}

// documents are complete before the database is asked anything, since an error of its
// own costs the transaction.
func (x *Outbox) documents(events []stage.Staged) (*batch, error) {
	created := x.o.Now()
	b := &batch{events: events}
	for i := range events {
		id, err := uuid.NewV7()
		if err != nil {
			return nil, fmt.Errorf("making a row's id: %w", err)
		}
		f := fields{_id: bson.NewObjectID(), id: id, created: created}
		doc, err := x.o.document(&events[i], f)
		if err != nil {
			return nil, fmt.Errorf("event of type %q for route %q: %w", events[i].Type, events[i].Route, err)
		}
		b.left, b.ids, b.docs = append(b.left, events[i]), append(b.ids, f._id), append(b.docs, doc)
	}
	return b, nil
}

// write is the flush in a transaction. The mark comes last: what conflicts most is
// held for the shortest time.
func (x *Outbox) write(ctx context.Context, b *batch) (ignored []stage.Staged, err error) {
	if ignored, err = x.leaveOut(ctx, b); err != nil {
		return nil, err
	}
	if len(b.docs) > 0 {
		if _, err := x.coll.InsertMany(ctx, b.docs, options.InsertMany().SetOrdered(true)); err != nil {
			return nil, err
		}
		if x.o.Form == DocumentsDeleted {
			if _, err := x.coll.DeleteMany(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: b.ids}}}}); err != nil {
				return nil, err
			}
		}
	}
	return ignored, x.mark(ctx, b)
}

// writeAlone is the flush outside of a transaction. The mark comes first: one that
// covers nothing does no harm, an event that no mark covers does.
func (x *Outbox) writeAlone(ctx context.Context, b *batch) (ignored []stage.Staged, err error) {
	if err := x.mark(ctx, b); err != nil {
		return nil, err
	}
	if ignored, err = x.leaveOut(ctx, b); err != nil {
		return nil, err
	}
	late, err := x.insertAlone(ctx, b)
	return append(ignored, late...), err
}

// insertAlone goes on behind a document that somebody was quicker with since we looked.
func (x *Outbox) insertAlone(ctx context.Context, b *batch) (ignored []stage.Staged, err error) {
	for len(b.docs) > 0 {
		_, err := x.coll.InsertMany(ctx, b.docs, options.InsertMany().SetOrdered(true))
		at, repeated := repeatedAt(err)
		if !repeated {
			return ignored, err
		}
		ignored = append(ignored, b.left[at])
		b.left, b.ids, b.docs = b.left[at+1:], b.ids[at+1:], b.docs[at+1:]
	}
	return ignored, nil
}

// repeatedAt is the place of the document that an ordered insert ended at because its
// route and event id were there already.
func repeatedAt(err error) (at int, repeated bool) {
	many, ok := errors.AsType[mongo.BulkWriteException](err)
	if !ok || many.WriteConcernError != nil || len(many.WriteErrors) != 1 || many.WriteErrors[0].Code != duplicateKey {
		return 0, false
	}
	return many.WriteErrors[0].Index, true
}

// duplicateKey is the server's code of an insert that a unique index refuses.
const duplicateKey = 11000

func (x *Outbox) mark(ctx context.Context, b *batch) error {
	if x.o.NoCheckpoint {
		return nil
	}
	return x.o.Checkpoint.raise(ctx, x.db, b.events[len(b.events)-1].Stamp)
}
