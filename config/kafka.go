package config

import "time"

// Kafka is the broker and how records are sent to it.
type Kafka struct {
	// Addresses to begin with, as host:port. One that answers is enough.
	Brokers []string `yaml:"brokers" required:"true"`
	// Name in the broker's logs and quotas. Default: `walrelay-<name>`.
	ClientID string `yaml:"client_id"`
	// How long a record waits for others to share its request; `0s` sends at once.
	Linger time.Duration `yaml:"linger" default:"5ms" zero:"true"`
	// Compression of the records. `lz4` is recommended where all consumers can read it.
	Compression string `yaml:"compression" default:"none" enum:"none|lz4|snappy|gzip|zstd"`
	// The largest batch of records, before compression; never more than the topic takes. A larger record is sent alone.
	BatchMaxBytes Size `yaml:"batch_max_bytes" default:"1MB"`
	// Records under way to the broker, at most.
	InFlightRecords int `yaml:"in_flight_records" default:"65536" min:"1"`
	// Bytes under way to the broker, at most.
	InFlightBytes Size `yaml:"in_flight_bytes" default:"64MiB"`
	// How long a broker may keep silent over a request.
	RequestTimeout time.Duration `yaml:"request_timeout" default:"10s"`
	// Encryption towards the broker.
	TLS TLS `yaml:"tls"`
	// Authentication at the broker.
	SASL SASL `yaml:"sasl"`
	// Lets walrelay create topics that are missing.
	CreateTopics bool `yaml:"create_topics" default:"false"`
	// Partitions of a topic that walrelay creates. Default: as the broker says.
	Partitions int `yaml:"partitions" min:"1"`
	// Replicas of a topic that walrelay creates. Default: as the broker says.
	Replication int `yaml:"replication" min:"1" max:"32767"`
	// What happens to an event that can never be published: `stop` halts its source, `dlq` sends it to `dlq_topic`.
	OnPoison string `yaml:"on_poison" default:"stop" enum:"stop|dlq" later:"park"`
	// Topic for dead letters.
	DLQTopic string `yaml:"dlq_topic"`
}

// TLS is the encryption towards the broker.
type TLS struct {
	// Turns it on.
	Enabled bool `yaml:"enabled" default:"false"`
	// File with the certificates of the authorities to trust, PEM. Default: the system's.
	CAFile string `yaml:"ca_file"`
	// File with the client's certificate, PEM.
	CertFile string `yaml:"cert_file"`
	// File with the key of the client's certificate, PEM.
	KeyFile string `yaml:"key_file"`
	// Name to expect in the broker's certificate. Default: the host of its address.
	ServerName string `yaml:"server_name"`
	// Accepts any certificate. For trials only.
	InsecureSkipVerify bool `yaml:"insecure_skip_verify" default:"false"`
}

// SASL is the authentication at the broker.
type SASL struct {
	// How to authenticate; without it, not at all.
	Mechanism string `yaml:"mechanism" enum:"plain|scram-sha-256|scram-sha-512|oauthbearer"`
	// User, for plain and scram.
	User string `yaml:"user"`
	// Password, for plain and scram.
	Password Secret `yaml:"password"`
	// Token, for oauthbearer.
	Token Secret `yaml:"token"`
	// File with the token, read again for each session. For oauthbearer, instead of token.
	TokenFile string `yaml:"token_file"`
}
