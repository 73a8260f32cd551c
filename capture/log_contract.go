package capture

import (
	"context"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

// Log is the log of one source, with the record of how far it was read. [Slot] is
// that of Postgres. Errors answer their class; a position that is lost has the fault
// event.FaultGap.
type Log interface {
	// Source is the name in the configuration.
	Source() string

	// Open opens a stream from the position that is remembered. haltEarly: what is missing on the server
	// ends it, instead of being looked for again and again.
	Open(haltEarly bool, state func(event.State, event.Condition), warning func(key string, c event.Condition)) (Stream, error)

	// Peek opens a stream that reads what Open's would, and leaves no trace: nothing is confirmed or
	// remembered, and who opens the log next finds it as it was.
	Peek(state func(event.State, event.Condition)) (Stream, error)

	// Assess answers what a stream opened now would find: the phase that was remembered and
	// whether another relay is reading, or the error that it would end with. It changes nothing.
	Assess(ctx context.Context) (phase event.Phase, active bool, err error)

	// Probe tries what only an attempt to read can tell: whether a stream would be let in.
	Probe(ctx context.Context) error

	// Renew begins anew, now, in place of a position that cannot be used. What the table
	// cannot make up for is said in lost, for people; an empty What: nothing.
	Renew(ctx context.Context, why error) (lost event.Condition, err error)

	// NotePolling remembers that the table is read from now on, past the position.
	NotePolling(ctx context.Context) error

	// End is the end of the log now: whatever is committed already lies below.
	End(ctx context.Context) (event.Position, error)

	// Listen calls wake whenever the server says that rows were written, until ctx ends
	// or the connection does.
	Listen(ctx context.Context, wake func()) error

	// Clock reads the server's clock, for the order of stamps.
	Clock() Clock

	// Reconnect counts an attempt that failed before there was a stream.
	Reconnect(err error)
}

// Stream is a log that is being followed.
type Stream interface {
	outbox.Log
	// Progress is the ladder of positions.
	Progress() event.Progress
	// InFlightBytes is the memory that events under way take.
	InFlightBytes() int64
}

// Clock looks at a server's clock. It is for one goroutine.
type Clock interface {
	Read(ctx context.Context) (event.Reading, error)
	Close(ctx context.Context)
}
