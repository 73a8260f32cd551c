package event

// Header is one Kafka record header.
type Header struct {
	Key   string
	Value []byte
}

// Order is the order in which the records of a route come to their partition.
type Order uint8

// The orders.
const (
	// ByCommit is the order of commits in each source, which needs no waiting.
	ByCommit Order = iota
	// ByStamp is the order of the events' stamps, over all sources.
	ByStamp
	// ByStampWithinCommit keeps the order of commits among the events that one source has of one
	// key, and orders the rest by stamps.
	ByStampWithinCommit
)

// Record is a Kafka record that has not been sent yet. Its slices alias the
// event's memory or the router's scratch memory; the Record is a value that the
// publisher copies, the bytes must stay as they are until the result is there.
type Record struct {
	Topic string
	// Key is nil when the record has none.
	Key []byte
	// Value is nil for a tombstone.
	Value   []byte
	Headers []Header
	// Millis is the record's timestamp, milliseconds since 1970 UTC.
	Millis int64
	// FallbackMillis replaces Millis where the topic's window refuses it: the commit time.
	FallbackMillis int64
	// Hash is the Java-compatible murmur2 of Key with the sign bit cleared; the
	// partition is Hash modulo the number of partitions.
	Hash uint32
	// Spread asks for any partition instead: there is no order to keep.
	Spread bool
	// Loose: the route does not hold back. A failing event of the key holds nothing.
	Loose bool
	// Order is the order that the route asks for.
	Order Order
	// Partial: the event was refused before the record was complete. It may be shown
	// and put aside, never sent as it stands.
	Partial bool
	// Origin names the event in messages to people.
	Origin Origin
}

// Origin says which event a record was made of; for errors and dead letters,
// never for payloads.
type Origin struct {
	Source   string
	Relation string
	EventID  []byte
	// Row is the primary key of the row, nil for an event without one; Route its route.
	Row, Route []byte
	// Xid is the transaction that wrote it; zero where there is none.
	Xid     uint32
	Commit  Position
	Ordinal uint32
}
