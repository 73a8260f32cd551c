package outbox

import (
	"context"

	"github.com/walrelay/walrelay/event"
)

// Desk is publish.Desk for one source: where its events are put aside. [Scribe]
// and [Poller] are desks.
type Desk interface {
	// Held reports whether later events of the key must wait.
	Held(key []byte) bool
	// Park puts the record aside, durably when it returns nil, and holds its key.
	Park(ctx context.Context, rec *event.Record, t event.Ticket, why error) error
	// Lettered tells that a dead letter took the record's place.
	Lettered(rec *event.Record, t event.Ticket, why error)
	// Return takes the record back whose topic is missing, to try it again later; or
	// refuses, and the record waits for its topic.
	Return(rec *event.Record, t event.Ticket, why error) bool
}
