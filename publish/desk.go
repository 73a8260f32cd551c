package publish

import (
	"context"

	"github.com/walrelay/walrelay/event"
)

// Desk is where events are put aside instead of being published, and who knows
// which keys are held because of it. Package outbox has the desks; one per source,
// told apart by the ticket's Source.
type Desk interface {
	// Held reports whether later events of the key must wait. It is asked for every
	// record that has a key and is not loose, just before it is handed over, and again
	// when a lane is repaired; it takes no lock as long as no key is held.
	Held(source uint16, key []byte) bool

	// Park puts a record aside and holds its key before it returns: the record is
	// poison, or its key is held (why is then event.ErrHeld). Nil: it is durable, and the
	// ticket's result is nil. An error of the Retry class: ask again after a pause (where
	// why is event.ErrHeld, Held is asked first: the answer for a key that was opened
	// meanwhile is such an error, and the record goes out). Any other: the source is
	// stopped with it. It may block on a database; ctx ends with the publisher, the record
	// and its bytes are the publisher's.
	Park(ctx context.Context, rec *event.Record, t event.Ticket, why error) error

	// Lettered tells that a dead letter took the record's place, before the ticket's
	// result. It must not block.
	Lettered(rec *event.Record, t event.Ticket, why error)

	// Return asks whether the source takes a record back whose topic is missing, to
	// try it again later by itself. If so its key is held from now on, and the ticket's
	// result is the error, of the Retry class; otherwise the record waits for the topic and
	// is offered again from time to time. Records are offered in order. It must not block and
	// must not call the publisher.
	Return(rec *event.Record, t event.Ticket, why error) bool
}
