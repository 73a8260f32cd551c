package config

import "time"

// Postgres is how one database is read.
type Postgres struct {
	// Connection string, as a URL or as keywords; several hosts are allowed. Reserved characters of a password must be
	// percent-encoded in a URL (`@` is `%40`, `/` is `%2F`, `%` is `%25`).
	URL DSN `yaml:"url" required:"true"`
	// The role that the relay logs in with, if `walrelay init` runs as another one: it gets the rights it needs.
	Role string `yaml:"role"`
	// Outbox tables, as SQL identifiers: `public.outbox`, `'"Sales-EU"."Outbox.Order"'`. Unquoted names are folded to
	// lower case as SQL does; without a schema it is `public`.
	Tables []Relation `yaml:"tables"`
	// Prefixes of logical messages to publish (`pg_logical_emit_message`), compared byte for byte. A list of prefixes
	// alone, or a mapping.
	Messages Messages `yaml:"messages"`
	// The same as `messages.allow_nontransactional`, for use with the short form of `messages`.
	MessagesAllowNontransactional bool `yaml:"messages_allow_nontransactional"`
	// How events are found. `log` reads the write-ahead log. `poll` claims pending rows of the tables, where logical
	// replication is not possible. `auto` reads the log and polls while its slot cannot be used, then goes back without a gap.
	Capture string `yaml:"capture" default:"log" enum:"log|poll|auto"`
	// Replication slot; at most 63 of `a-z`, `0-9` and `_`. Default: `walrelay_<name>_<source>`.
	Slot string `yaml:"slot"`
	// Publication, exactly as it is called in the database: capitals are kept. Default: `walrelay_<name>_<source>`.
	Publication string `yaml:"publication"`
	// Makes the slot follow a failover to a standby (Postgres 17 and later).
	Failover bool `yaml:"failover" default:"true"`
	// Accepts a publication with a row filter. Rows that it leaves out are never published, and nobody is told.
	AllowRowFilter bool `yaml:"allow_row_filter" default:"false"`
	// Schema of walrelay's own tables in the database, exactly as it is called there; `none` writes nothing to the
	// database and gives up what needs it: marks, parking, polling, and telling a lost position from a first start.
	Bookkeeping string `yaml:"bookkeeping" default:"walrelay"`
	// What happens when the position is lost or the log has a gap. `stop` halts this source with a remedy. `catch_up` makes a
	// new slot, publishes all rows that are still pending and goes on with the log; it needs `after_publish: mark` or `delete`.
	OnGap string `yaml:"on_gap" default:"stop" enum:"stop|catch_up"`
	// The roles that write events, for `order: hlc`: open transactions of other roles are then not waited for. Default: any role.
	Producers []string `yaml:"producers"`
	// The longest time between two status replies; a third of the server's `wal_sender_timeout` if that is less.
	StatusInterval time.Duration `yaml:"status_interval" default:"10s"`
	// The largest event that is read; one that is larger is refused and goes the way of `kafka.on_poison`.
	MaxEventBytes Size `yaml:"max_event_bytes" default:"16MiB"`
	// Payload that may be read and not yet acknowledged. A full window stops reading, never the status replies.
	InFlightBytes Size `yaml:"in_flight_bytes" default:"32MiB"`
	// How long the server may keep silent, connecting or answering, before the connection is given up.
	WireTimeout time.Duration `yaml:"wire_timeout" default:"15s"`
	// The longest wait between two attempts to connect; the first waits are short.
	ReconnectMax time.Duration `yaml:"reconnect_max" default:"30s"`
	// Time between two looks at the slot, the publication and the server's settings.
	CheckInterval time.Duration `yaml:"check_interval" default:"10s"`
}

// Messages are the logical messages to publish.
type Messages struct {
	// The prefixes.
	Prefixes []string `yaml:"prefixes"`
	// Publishes also messages emitted with `transactional => false`. They are in the log even if their transaction
	// rolls back. Their records carry the header `walrelay_transactional: false`.
	AllowNontransactional bool `yaml:"allow_nontransactional" default:"false"`
}

func (Messages) short() string { return "prefixes" }
