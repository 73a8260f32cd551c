package mongo

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"github.com/walrelay/walrelay/hlc"
	"github.com/walrelay/walrelay/stage"
)

// Outbox is a process's way into one outbox: its clock, where the clock's mark is
// kept, and how documents are written. It holds no session and is safe for
// concurrent use.
type Outbox struct {
	o    Options
	db   *mongo.Database
	coll *mongo.Collection
}

// Result is what a flush did.
type Result = stage.Result

// Open makes an outbox ready: it loads the checkpoint and lets the clock go on from
// there, so open it before anything is stamped. A checkpoint that cannot be read, or
// that is none, is an error: a clock without it might repeat stamps that are out.
//
// The outbox belongs to db and its client for good: see [ErrOtherClient].
func Open(ctx context.Context, db *mongo.Database, o Options) (*Outbox, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("opening the outbox: %w", err)
	}
	o = o.withDefaults()
	if !o.NoCheckpoint {
		mark, _, err := o.Checkpoint.Load(ctx, db)
		if err != nil {
			return nil, fmt.Errorf("opening the outbox: %w", err)
		}
		if err := o.Clock.Resume(mark); err != nil {
			return nil, fmt.Errorf("opening the outbox: %w", o.Checkpoint.misfit("the greatest mark in "+o.Checkpoint.collection()+" is no stamp of a clock", err))
		}
	}
	return &Outbox{o: o, db: db, coll: primary(db, o.Collection)}, nil
}

// primary is a collection that is read where it is written, whatever the client
// prefers: a secondary may not have an event, or a mark, that is out already.
func primary(db *mongo.Database, name string) *mongo.Collection {
	return db.Collection(name, options.Collection().SetReadPreference(readpref.Primary()))
}

// Clock is the process's clock; give it to what consumes events, so that reactions
// are stamped above their causes. Watch its Lead.
func (x *Outbox) Clock() *hlc.Clock { return x.o.Clock }

// Buffer makes a buffer for one attempt of one unit of work. Beside what every
// buffer refuses, it refuses what BSON has no room for: see the page of the package.
func (x *Outbox) Buffer() *stage.Buffer {
	return stage.NewBuffer(x.o.Clock, x.o.Now, x.o.MaxEvents).Checked(func(s *stage.Staged) error {
		_, err := x.document(s)
		return err
	})
}
