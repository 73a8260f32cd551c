package postgres

import (
	"context"
	"fmt"

	"github.com/walrelay/walrelay/hlc"
	"github.com/walrelay/walrelay/stage"
)

// Outbox is a process's way into one outbox: its clock, where the clock's mark is
// kept, and how rows are written. It holds no connection and is safe for concurrent
// use.
type Outbox struct {
	o Options
	// The statements, the same for any number of events.
	insert, remove, emit string
}

// Open makes an outbox ready: it loads the checkpoint and lets the clock go on from
// there, so open it before anything is stamped. db may be a pool. A checkpoint that
// cannot be read, or that is none, is an error: a clock without it might repeat
// stamps that are out.
func Open(ctx context.Context, db DB, o Options) (*Outbox, error) {
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
			return nil, fmt.Errorf("opening the outbox: %w", o.Checkpoint.misfit("the greatest mark in "+o.Checkpoint.table()+" is no stamp of a clock", err))
		}
	}
	return &Outbox{o: o, insert: o.insertStatement(), remove: "delete from " + o.Table.Sanitize() + " where id = any($1::uuid[])", emit: o.emitStatement()}, nil
}

// Clock is the process's clock; give it to what consumes events, so that reactions
// are stamped above their causes. Watch its Lead.
func (x *Outbox) Clock() *hlc.Clock { return x.o.Clock }

// Buffer makes a buffer for one attempt of one unit of work.
func (x *Outbox) Buffer() *stage.Buffer { return stage.NewBuffer(x.o.Clock, x.o.Now, x.o.MaxEvents) }

// Result is what a flush did.
type Result = stage.Result
