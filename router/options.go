package router

import "github.com/walrelay/walrelay/event"

// Options says how the events of one source become records.
type Options struct {
	// Source is the source's name: in Origin, walrelay_position and ce_source.
	Source string
	// Schema decides the default topic and the names of the headers.
	Schema event.Schema
	// Routes is the route table; empty means one route "*" with every default.
	// A table without "*" refuses events that match nothing.
	Routes []Route
	// Headers adds columns as headers, in the order of [event.Event.Extra].
	Headers []Header
	// Position adds the header walrelay_position: source:position:ordinal.
	Position bool
}

// Header adds a column of the outbox table as a record header.
type Header struct {
	Name   string
	Column string
}

// Route says what becomes of the events whose route value matches. Every empty
// field stands for its default, which is named first.
type Route struct {
	// Match is an exact route value, "prefix.*" (everything that begins with
	// "prefix."), or "*".
	Match string
	// Topic is a template with {route}, {tenant} and {type}. Default: the route,
	// for debezium outbox.event.{route}.
	Topic       string
	KeyFallback KeyFallback
	NullPayload NullPayload
	Envelope    Envelope
	Timestamp   Timestamp
	Partition   Partition
	Encryption  Encryption
	// Loose gives up holding back: a failing event of a key lets the later ones pass.
	Loose bool
	// Order is what the relay makes of the order; the router only says it.
	Order event.Order
}

// KeyFallback is the record's key where the event's own is NULL or empty.
type KeyFallback string

// The fallbacks.
const (
	FallbackEventID KeyFallback = "event_id"
	FallbackNone    KeyFallback = "none" // no key; the record is spread
)

// NullPayload is what becomes of an event whose payload is NULL.
type NullPayload string

// The policies.
const (
	NullPoison    NullPayload = "poison"
	NullTombstone NullPayload = "tombstone" // a record without a value
)

// Envelope is what is put around the payload.
type Envelope string

// The envelopes.
const (
	EnvelopeNone        Envelope = "none"
	EnvelopeCloudEvents Envelope = "cloudevents" // ce_ headers, body untouched
	EnvelopeJSON        Envelope = "json"        // one object, the payload's bytes in its member data
)

// Timestamp is where the record's time comes from.
type Timestamp string

// The times.
const (
	TimestampCommit     Timestamp = "commit"
	TimestampOccurredAt Timestamp = "occurred_at" // commit time where it cannot be used
)

// Partition is what decides on the partition.
type Partition string

// The ways.
const (
	PartitionKey    Partition = "key"
	PartitionSpread Partition = "spread" // any partition: no order to keep
	PartitionNone   Partition = "none"   // another word for spread
)

// Encryption is what the route declares about its payloads. Rows encrypted at
// rest and end to end look the same; only the declaration tells them apart.
type Encryption string

// The declarations.
const (
	EncryptionForward  Encryption = "forward"    // whatever is there passes
	EncryptionNone     Encryption = "none"       // ciphertext stops the source
	EncryptionEndToEnd Encryption = "end_to_end" // plain text stops the source
)

// withDefaults fills what was left empty.
func (rt Route) withDefaults(p event.Preset) Route {
	fill(&rt.Topic, defaultTopic(p))
	fill(&rt.KeyFallback, FallbackEventID)
	fill(&rt.NullPayload, NullPoison)
	fill(&rt.Envelope, EnvelopeNone)
	fill(&rt.Timestamp, TimestampCommit)
	fill(&rt.Partition, PartitionKey)
	fill(&rt.Encryption, EncryptionForward)
	return rt
}

func fill[T ~string](v *T, def T) {
	if *v == "" {
		*v = def
	}
}

func defaultTopic(p event.Preset) string {
	if p == event.Debezium {
		return "outbox.event.{route}"
	}
	return "{route}"
}
