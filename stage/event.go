package stage

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/walrelay/walrelay/hlc"
)

// Event is what an application has to say. Route, Type and Payload are required;
// what else is left out is made, taken from the context, or absent.
type Event struct {
	// Route decides the topic: the relay's route table maps it. Column outbox_route.
	Route string
	// Type tells readers what happened, for instance OrderPlaced. Column event_type,
	// header forze_type.
	Type string
	// Key is what the event is about: events of one key keep their order. Empty means
	// none; the record's key is then the event id. Column ordering_key.
	Key string
	// Payload becomes the record's value. It is marshalled by encoding/json when the
	// event is staged, and must come out as a JSON object, which is what readers of
	// this outbox expect. A json.RawMessage is taken as it is; note that a jsonb column
	// does not keep white space, the order of members, or members of the same name.
	Payload any

	// ID identifies the event for ever: readers recognise repetitions by it. A UUIDv7
	// is made unless it is given.
	ID uuid.UUID
	// OccurredAt is when it happened; the time of staging unless given. Microseconds
	// are kept, what is finer is cut off.
	OccurredAt time.Time
	// Identity says whose the event is and what it follows from. What is left out is
	// taken from the context: see [WithIdentity].
	Identity
	// Traceparent is the W3C trace context, taken from the OpenTelemetry span in the
	// context unless given.
	Traceparent string
	// AggregateVersion is the version of what the event is about, from 1; 0 means none.
	// It is written where the outbox has a column for it.
	AggregateVersion int64
}

// Staged is an event with everything that staging fixed.
type Staged struct {
	// Event has all its fields now, save Payload, which is nil: see Body.
	Event
	// Stamp orders the event among causes and effects.
	Stamp hlc.Stamp
	// Body is the payload as JSON.
	Body json.RawMessage
}

// Message is a record without a row, as it stands: any bytes, no headers of its
// own but the event id that the relay makes of its place in the log. It is for
// payloads that are no JSON; an [Event] can be written as a message too, with all
// its headers.
type Message struct {
	// Route decides the topic. It holds no slash.
	Route string
	// Key is what the message is about; it may hold slashes. Empty means none.
	Key string
	// Content becomes the record's value, byte for byte.
	Content []byte
}
