package config

import "time"

// Source is one database with its outbox relations.
type Source struct {
	// The Postgres database to read. A source has this or `mongo`.
	Postgres Postgres `yaml:"postgres" oneof:"true"`
	// The MongoDB replica set to read. A source has this or `postgres`.
	Mongo Mongo `yaml:"mongo" oneof:"true"`
	// What the columns of the outbox tables mean. The name of a preset alone, or a mapping.
	Schema Schema `yaml:"schema"`
	// Further record headers: the name of the header, and the column whose text becomes its value.
	Headers Map[string] `yaml:"headers" key:"<header>"`
	// Adds the header `walrelay_position` (source, position of the commit, ordinal in the transaction).
	PositionHeader bool `yaml:"position_header" default:"false"`
	// What happens to a row after it was published: `mark` sets its state, `delete` removes it, `keep` leaves it alone.
	// With `keep` nothing but the log tells what is done: no polling, no catch-up, no retries of single rows. Default: `mark`;
	// for debezium `keep`, and `delete` with `capture: poll`; `keep` without tables or without bookkeeping.
	AfterPublish string `yaml:"after_publish" enum:"mark|delete|keep"`
	// How the table is read.
	Poll Poll `yaml:"poll"`
	// Time between two looks, beside the log, for rows that it does not bring: due retries, rows set back to `pending`, rows
	// older than the slot.
	SweepEvery time.Duration `yaml:"sweep_every" default:"5s"`
	// Removal of published rows. Off unless `keep_published` is given.
	Retention Retention `yaml:"retention"`
	// Events that are kept whole in the table of parked events, at most: those without a row, and all of a table whose rows
	// carry no state. Beyond it the source stops.
	ParkedBudget int `yaml:"parked_budget" default:"10000" min:"1"`
}

// Schema is a preset, perhaps with other column names.
type Schema struct {
	// The family of the outbox tables.
	Preset string `yaml:"preset" default:"forze" enum:"forze|debezium|basic"`
	// Other column names than the preset's, by field. Fields: `id event_id route key type payload occurred_at tenant_id
	// execution_id correlation_id causation_id traceparent hlc aggregate_version status available_at published_at`.
	Columns Map[string] `yaml:"columns" key:"<field>"`
}

func (Schema) short() string { return "preset" }
