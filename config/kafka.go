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
	InFlightRecords int `yaml:"in_flight_records" default:"16384" min:"1"`
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
	// What happens to an event that can never be published: `park` puts it aside for `walrelay parked` and holds back the later
	// events of its key, `dlq` sends it to `dlq_topic` and goes on, `stop` halts its source. Default: `park` where every source
	// has bookkeeping, else `stop`.
	OnPoison string `yaml:"on_poison" enum:"park|dlq|stop"`
	// Topic for dead letters.
	DLQTopic string `yaml:"dlq_topic"`
}

// TLS is the encryption towards the broker. The broker's certificate is always verified.
type TLS struct {
	// Turns it on.
	Enable bool `yaml:"enable" default:"false"`
	// File with the certificates of the authorities to trust, PEM. Default: the system's.
	CAFile string `yaml:"ca_file"`
	// File with the client's certificate, PEM. It is read again when it changes.
	CertFile string `yaml:"cert_file"`
	// File with the key of the client's certificate, PEM.
	KeyFile string `yaml:"key_file"`
	// Name to expect in the broker's certificate. Default: the host of its address.
	ServerName string `yaml:"server_name"`
}

// SASL is the authentication at the broker.
type SASL struct {
	// How to authenticate; without it, not at all.
	Mechanism string `yaml:"mechanism" enum:"PLAIN|SCRAM-SHA-256|SCRAM-SHA-512|OAUTHBEARER"`
	// User, for PLAIN and SCRAM.
	User string `yaml:"user"`
	// Password, for PLAIN and SCRAM.
	Password Secret `yaml:"password"`
	// Token, for OAUTHBEARER.
	Token Secret `yaml:"token"`
	// File with the token, read again at each authentication. For OAUTHBEARER, instead of a token.
	TokenFile string `yaml:"token_file"`
	// Server that gives tokens by the OAuth 2 client-credentials grant. For OAUTHBEARER, instead of a token.
	Endpoint Endpoint `yaml:"endpoint"`
	// Permits PLAIN and OAUTHBEARER without TLS: the secret is then readable on the wire.
	AllowPlaintext bool `yaml:"allow_plaintext" default:"false"`
}

// Endpoint is an OAuth 2 token endpoint.
type Endpoint struct {
	// Its URL.
	URL string `yaml:"url"`
	// Name of this client there.
	ClientID string `yaml:"client_id"`
	// Secret of this client there.
	ClientSecret Secret `yaml:"client_secret"`
	// What to ask for.
	Scope string `yaml:"scope"`
}
