package config

// Route says what becomes of the events of one route.
type Route struct {
	// Topic; a template with `{route}`, `{tenant}` and `{type}`. Default: the schema's, which is `{route}`, or
	// `outbox.event.{route}` for debezium.
	Topic string `yaml:"topic"`
	// The record's key for an event without one: its event id, or none, which spreads the records over the partitions.
	KeyFallback string `yaml:"key_fallback" default:"event_id" enum:"event_id|none"`
	// What becomes of an event whose payload is NULL: refused, or a record without a value.
	NullPayload string `yaml:"null_payload" default:"poison" enum:"poison|tombstone"`
	// What is put around the payload: nothing, CloudEvents headers, or one JSON object.
	Envelope string `yaml:"envelope" default:"none" enum:"none|cloudevents|json"`
	// The record's time. An `occurred_at` that the topic would refuse falls back to the commit time.
	Timestamp string `yaml:"timestamp" default:"commit" enum:"commit|occurred_at"`
	// What picks the partition: the key, or nothing, which gives up the order (`none` is another word for `spread`).
	Partition string `yaml:"partition" default:"key" enum:"key|spread|none"`
	// What the payloads of this route must be: anything, plain text only, or ciphertext only.
	Encryption string `yaml:"encryption" default:"forward" enum:"forward|none|end_to_end"`
	// Holds back the later events of a key while an earlier one is parked or waits for its next attempt. `false` lets them
	// pass: the order of a key is then no longer kept when one of its events fails.
	HoldBack bool `yaml:"hold_back" default:"true"`
	// The order of the records in their partition. `commit`: as each source committed, without waiting. `hlc`: by the stamps
	// of the events over all sources, which waits for stragglers as `order` says; events that come too late are counted.
	Order string `yaml:"order" default:"commit" enum:"commit|hlc"`
	// With `order: hlc`, the order among the events that one source has of one key. `commit` keeps the order of commits there, and
	// uses stamps between sources only; `stamp` uses them always.
	WithinKey string `yaml:"within_key" default:"stamp" enum:"stamp|commit"`
	// The number of partitions that the keys of the topic are spread over, whatever the topic grows to; for a topic
	// without `{`. Default: all that there are.
	PinPartitions int `yaml:"pin_partitions" min:"1"`
}
