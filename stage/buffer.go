package stage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/walrelay/walrelay/hlc"
)

// DefaultMaxEvents is how many events one flush takes: what forze applications allow.
const DefaultMaxEvents = 500

// ErrTooMany is what a flush of more events than allowed wraps.
var ErrTooMany = errors.New("too many events for one flush")

// Buffer holds the events of one attempt of one unit of work until they are
// flushed in its transaction. It is safe for concurrent use; events that are staged
// while a flush is under way wait for its end, and belong to the next one.
type Buffer struct {
	clock *hlc.Clock
	now   func() time.Time
	limit int
	check func(*Staged) error

	mu     sync.Mutex
	events []Staged
}

// NewBuffer makes an empty buffer. Events are stamped by clock, which is the
// process's only one; now, usually time.Now, says when they occurred; limit bounds
// the events of one flush, 0 stands for [DefaultMaxEvents]. Applications ask the
// outbox that they opened (stage/postgres, stage/mongo) for one instead.
func NewBuffer(clock *hlc.Clock, now func() time.Time, limit int) *Buffer {
	if limit <= 0 {
		limit = DefaultMaxEvents
	}
	return &Buffer{clock: clock, now: now, limit: limit}
}

// Checked lets check refuse events as well, for a database that cannot hold all that
// others can: it is called for each event when that is staged, before it has a stamp.
// It is for packages that write to a database, and for the moment before first use.
func (b *Buffer) Checked(check func(*Staged) error) *Buffer {
	b.check = check
	return b
}

// Stage takes in an event and answers it with all that staging fixed. It does no
// I/O. An event that could not be written is refused, with a sentence that names
// the field and never the payload; the buffer is then as before.
func (b *Buffer) Stage(ctx context.Context, e Event) (Staged, error) {
	s, err := b.prepare(ctx, e)
	if err != nil {
		return Staged{}, fmt.Errorf("event of type %q for route %q: %w", e.Type, e.Route, err)
	}
	// Under the lock, so that the events are in the order of their stamps.
	b.mu.Lock()
	defer b.mu.Unlock()
	s.Stamp = b.clock.Now()
	b.events = append(b.events, s)
	return s, nil
}

func (b *Buffer) prepare(ctx context.Context, e Event) (Staged, error) {
	if err := e.check(); err != nil {
		return Staged{}, err
	}
	body, err := marshal(e.Payload)
	if err != nil {
		return Staged{}, err
	}
	e.Payload = nil
	if e.ID == uuid.Nil {
		if e.ID, err = uuid.NewV7(); err != nil {
			return Staged{}, fmt.Errorf("making its id: %w", err)
		}
	}
	if e.OccurredAt.IsZero() {
		e.OccurredAt = b.now()
	}
	e.OccurredAt = e.OccurredAt.UTC().Truncate(time.Microsecond)
	e.Identity = e.or(IdentityOf(ctx))
	if e.Traceparent == "" {
		e.Traceparent = traceparent(ctx)
	}
	s := Staged{Event: e, Body: body}
	if b.check != nil {
		if err := b.check(&s); err != nil {
			return Staged{}, err
		}
	}
	return s, nil
}

// Len is how many events wait for a flush.
func (b *Buffer) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.events)
}

// Flush hands the events to write, in the order of their stamps, and empties the
// buffer if that succeeds. It is for packages that write to a database; write must
// not keep the slice and not use the buffer. With nothing staged write is not
// called. More events than allowed are refused with [ErrTooMany]: a unit of work
// that says so much ought to be split, and rows by the thousand belong into
// several transactions.
func (b *Buffer) Flush(write func([]Staged) error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch n := len(b.events); {
	case n == 0:
		return nil
	case n > b.limit:
		return fmt.Errorf("%d events are staged and %d allowed, nothing is written: split the unit of work, or raise MaxEvents: %w", n, b.limit, ErrTooMany)
	}
	if err := write(b.events); err != nil {
		return err
	}
	b.events = nil
	return nil
}
