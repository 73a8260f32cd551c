package config

import "time"

// Mongo is how one replica set is read.
type Mongo struct {
	// Connection string (`mongodb://` or `mongodb+srv://`). Reserved characters of a password must be percent-encoded. An option
	// `timeoutMS` is refused: it would end the change stream.
	URL MongoURL `yaml:"url" required:"true"`
	// Database of the outbox collection. walrelay's own collections stand beside it.
	Database string `yaml:"database" required:"true"`
	// Outbox collection.
	Collection string `yaml:"collection" default:"outbox"`
	// How events are found. `stream` follows the change stream. `poll` claims pending documents, where change streams are not
	// possible. `auto` follows the stream and polls while its position cannot be used, then goes back without a gap.
	Capture string `yaml:"capture" default:"stream" enum:"stream|poll|auto"`
	// Prefix of the names of walrelay's own collections (`<prefix>_sources`, `<prefix>_parked`, `<prefix>_leases`). `none` writes nothing to the
	// database, which is possible with no way of capture: a change stream has no slot, so its position needs a place.
	Bookkeeping string `yaml:"bookkeeping" default:"walrelay"`
	// What happens when the position is lost: it is no longer in the oplog, or belongs to another replica set. `stop` halts this
	// source with a remedy. `catch_up` publishes all documents that are still pending and goes on with the stream from
	// now; documents that were inserted and deleted in one transaction meanwhile are lost. It needs `after_publish: mark` or `delete`.
	OnGap string `yaml:"on_gap" default:"stop" enum:"stop|catch_up"`
	// What happens when the collection is dropped or renamed. `stop` halts this source with a remedy, `continue` waits for a
	// collection of the same name, and misses nothing of it.
	OnDrop string `yaml:"on_drop" default:"stop" enum:"stop|continue"`
	// How a payload that is an embedded document or an array is written: `plain` as the JSON that people expect, `relaxed` or `canonical` as
	// MongoDB Extended JSON, `bson` as the bytes that stand in the document. Strings and binary payloads are never touched.
	Payload string `yaml:"payload" default:"plain" enum:"plain|relaxed|canonical|bson"`
	// How UUIDs are laid out that old drivers wrote (binary subtype 3): as the driver for `java`, `csharp` or `python` wrote them. With `raw` the
	// question is open: in payloads of form `plain` the bytes stand in base64, and an event with such an id, key or other field is refused.
	LegacyUUID string `yaml:"legacy_uuid" default:"raw" enum:"raw|java|csharp|python"`
	// Where documents without a stamp stand among those that have one, when the collection is read: `first`, as MongoDB sorts what is
	// missing, or `last`.
	MissingHLC string `yaml:"missing_hlc" default:"first" enum:"first|last"`
	// Events of one answer of the server, at most.
	BatchSize int `yaml:"batch_size" default:"1000" min:"1" max:"100000"`
	// How long the server waits for events before it answers that there are none.
	MaxAwait time.Duration `yaml:"max_await" default:"1s"`
	// Time between two records of the position. A crash repeats what was published since.
	CheckpointEvery time.Duration `yaml:"checkpoint_every" default:"1s"`
	// How long the stream stays with a relay that cannot be heard, before a standby takes it over.
	Lease time.Duration `yaml:"lease" default:"6s"`
	// The largest event that is read; one that is larger is refused and goes the way of `kafka.on_poison`.
	MaxEventBytes Size `yaml:"max_event_bytes" default:"16MiB"`
	// Events that may be read and not yet acknowledged. A full window stops reading.
	InFlightBytes Size `yaml:"in_flight_bytes" default:"32MiB"`
	// How long the server may keep silent, connecting or answering, before the connection is given up.
	WireTimeout time.Duration `yaml:"wire_timeout" default:"15s"`
	// The longest wait between two attempts to open the stream; the first waits are short.
	ReconnectMax time.Duration `yaml:"reconnect_max" default:"5s"`
	// Time between two looks at the oplog and the replica set.
	CheckInterval time.Duration `yaml:"check_interval" default:"10s"`
}
