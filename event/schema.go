package event

import "fmt"

// Preset names a family of outbox tables whose column names and meanings are known.
type Preset string

// The presets.
const (
	Forze    Preset = "forze"
	Debezium Preset = "debezium"
	Basic    Preset = "basic"
)

// Schema says which column of an outbox table carries which field.
type Schema struct {
	Preset Preset
	// Columns holds the column name of each field; empty: the preset has no such field.
	Columns [NumFields]string
	// Required fields must have a column in the table. The others may be missing there.
	Required [NumFields]bool
}

// NewSchema is the preset with some of its columns renamed.
func NewSchema(p Preset, rename map[Field]string) (Schema, error) {
	var s Schema
	switch p {
	case Forze:
		s = Schema{Preset: p, Columns: [NumFields]string{
			RowID: "id", EventID: "event_id", Route: "outbox_route", Key: "ordering_key", Type: "event_type",
			Payload: "payload", OccurredAt: "occurred_at", Tenant: "tenant_id", Execution: "execution_id",
			Correlation: "correlation_id", Causation: "causation_id", Traceparent: "traceparent", HLC: "hlc",
			Status: "status", AvailableAt: "available_at", PublishedAt: "published_at",
		}}
		s.require(RowID, EventID, Route, Type, Payload, OccurredAt, Status)
	case Debezium:
		s = Schema{Preset: p, Columns: [NumFields]string{
			RowID: "id", EventID: "id", Route: "aggregatetype", Key: "aggregateid", Type: "type", Payload: "payload",
			OccurredAt: "timestamp",
		}}
		s.require(RowID, EventID, Route, Key, Type, Payload)
	case Basic:
		s = Schema{Preset: p, Columns: [NumFields]string{
			RowID: "id", EventID: "id", Route: "aggregate_type", Key: "aggregate_id", Type: "event_type",
			Payload: "payload", OccurredAt: "created_at", PublishedAt: "published_at",
		}}
		s.require(RowID, EventID, Route, Key, Type, Payload)
	default:
		return Schema{}, fmt.Errorf("schema %q is unknown: want %s, %s or %s", p, Forze, Debezium, Basic)
	}
	for f, column := range rename {
		if column == "" {
			return Schema{}, fmt.Errorf("schema %s: the column for %s has an empty name", p, f)
		}
		s.Columns[f] = column
		if f == RowID && s.Columns[EventID] == "id" && p != Forze {
			s.Columns[EventID] = column
		}
	}
	return s, nil
}

func (s *Schema) require(fields ...Field) {
	for _, f := range fields {
		s.Required[f] = true
	}
}
