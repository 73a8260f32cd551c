package event

// Field names one value that walrelay understands in an outbox row, whatever
// the column is called in the table.
type Field uint8

// The fields. A schema preset says which column carries which.
const (
	RowID Field = iota // primary key of the row
	EventID
	Route       // picks the topic
	Key         // picks the partition
	Type        // event type
	Payload     // becomes the Kafka value, byte for byte
	OccurredAt  // timestamp as Postgres prints it
	Tenant      // uuid
	Execution   // uuid
	Correlation // uuid
	Causation   // uuid
	Traceparent // W3C trace context
	HLC         // decimal digits of a packed hlc.Stamp
	Version     // aggregate version
	Status      // pending, processing, published, failed
	AvailableAt // timestamp; not to be published before it
	PublishedAt // timestamp; set means published already
	NumFields
)

var fieldNames = [NumFields]string{
	"id", "event_id", "route", "key", "type", "payload", "occurred_at", "tenant_id", "execution_id", "correlation_id",
	"causation_id", "traceparent", "hlc", "aggregate_version", "status", "available_at", "published_at",
}

// String is the name that configuration and messages use for the field.
func (f Field) String() string {
	if f < NumFields {
		return fieldNames[f]
	}
	return "unknown field"
}

// FieldByName finds a field by the name that configuration uses.
func FieldByName(name string) (Field, bool) {
	for f, n := range fieldNames {
		if n == name {
			return Field(f), true
		}
	}
	return 0, false
}

// Event is one outbox row, document or logical message that was committed.
//
// All byte slices alias memory that belongs to the event's batch: they are
// valid until the batch's Memory is released, and nobody may write to them.
// The Event value itself is valid until the source's next call of Next.
type Event struct {
	// Fields holds each value as the server printed it. Nil is SQL NULL or a
	// column that the table does not have; empty is an empty value.
	Fields [NumFields][]byte
	// Extra holds the columns asked for as additional headers, in the order of
	// the source's configuration; nil as in Fields.
	Extra [][]byte
	// Headers are those that a logical message brought along, in its order.
	Headers []Header
	// Relation is where the event came from, for messages to people:
	// schema.table, or the prefix of a logical message.
	Relation string
	// Commit is the position of the transaction's commit record. With Ordinal it
	// identifies the event for ever, also across redelivery.
	Commit Position
	// Ordinal counts the events of one transaction from 0, in the order of writing.
	Ordinal uint32
	// CommitMicros is the commit time by the server's clock, microseconds since 1970 UTC.
	CommitMicros int64
	// Xid is the transaction that wrote the event, as the log names it; zero where there is none.
	Xid uint32
	// Prepared is the record that was made of the event before it was put aside: it is
	// published as it stands, the router is not asked. Usually nil.
	Prepared *Record
	// NonTransactional: a logical message outside of any transaction. What it speaks
	// of may have been rolled back, and it may have overtaken what was written before.
	NonTransactional bool
	// Refused is the poison error that the event met while it was read; it can only
	// be refused, by the policy for poison. Usually nil.
	Refused error
	// Elided is the size in bytes of a payload that was too large to be read; the
	// payload is then nil and the event can only be refused.
	Elided int64
}
