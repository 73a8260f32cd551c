package config

// Source is one database with its outbox relations.
type Source struct {
	// The Postgres database to read.
	Postgres Postgres `yaml:"postgres"`
	// What the columns of the outbox tables mean. The name of a preset alone, or a mapping.
	Schema Schema `yaml:"schema"`
	// Further record headers: the name of the header, and the column whose text becomes its value.
	Headers Map[string] `yaml:"headers" key:"<header>"`
	// Adds the header `walrelay_position` (source, position of the commit, ordinal in the transaction).
	PositionHeader bool `yaml:"position_header" default:"false"`
	// What happens to a row after it was published. `keep` leaves it alone.
	AfterPublish string `yaml:"after_publish" default:"keep" enum:"keep" later:"mark|delete"`
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
