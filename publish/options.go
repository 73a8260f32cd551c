package publish

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/walrelay/walrelay/event"
)

// PoisonPolicy says what happens to a record that can never be published as it is.
type PoisonPolicy string

// The policies.
const (
	// PoisonStop gives the record a Halt error and takes nothing more from its source.
	PoisonStop PoisonPolicy = "stop"
	// PoisonDLQ sends a dead letter in its place and goes on once that is acknowledged.
	PoisonDLQ PoisonPolicy = "dlq"
	// PoisonPark puts it aside at the Desk, and with it the later events of its key.
	PoisonPark PoisonPolicy = "park"
)

// Options are the settings of a Publisher. There is none for acknowledgements or
// idempotence: acks=all and the idempotent producer always hold.
type Options struct {
	// Brokers are host:port addresses to begin with; at least one.
	Brokers []string
	// ClientID is how brokers see the connection; default "walrelay".
	ClientID string

	// Linger is how long a batch waits for company. Zero sends at once; DefaultLinger is the usual choice.
	Linger time.Duration
	// Compression is none (default), lz4, zstd, snappy or gzip.
	Compression string
	// MaxInFlightRecords bounds what is taken and not yet decided; default 16 384.
	// An item under way costs about 1 KiB besides its bytes.
	MaxInFlightRecords int
	// MaxInFlightBytes bounds keys, values and headers of the same; default 64 MiB.
	// One record larger than that passes alone.
	MaxInFlightBytes int64
	// BatchMaxBytes bounds a batch before compression; default 1 000 000, and never
	// more than the topic takes. Larger records are sent alone.
	BatchMaxBytes int32

	TLS  TLS
	SASL SASL

	// CreateTopics makes missing topics, with Partitions and Replication (default -1: as the broker says).
	CreateTopics bool
	Partitions   int32
	Replication  int16
	// PinPartitions fixes the number of partitions that a topic's keys spread over,
	// whatever the topic grows to.
	PinPartitions map[string]int

	// Topics are looked at from the start, so that what is wrong with them shows
	// before the first event comes. Others are looked at when a record needs them.
	Topics []string

	// OnPoison is PoisonStop by default.
	OnPoison PoisonPolicy
	// DLQTopic receives the dead letters; required for PoisonDLQ.
	DLQTopic string

	// Desk puts events aside; nil: nothing is ever put aside. Required for PoisonPark.
	Desk Desk

	// Result receives each ticket's result, exactly once, from any goroutine. It must not block.
	Result func(event.Ticket, error)

	// RefreshEvery is how often partitions and limits of known topics are read again; default 30 s.
	RefreshEvery time.Duration
	// MissingEvery is how often a missing or forbidden topic is looked for; default 2 s.
	MissingEvery time.Duration
	// RequestTimeout is how long a broker may be silent over a request; default 10 s.
	RequestTimeout time.Duration

	// Dial replaces the dialer; TLS is put on top of it. For tests and proxies.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Extra options of the main client: logger and metrics hooks that are built elsewhere.
	// They are applied first, so that they cannot lower what the package promises.
	Extra []kgo.Opt
}

// DefaultLinger is the linger to configure where nothing else is asked for.
const DefaultLinger = 5 * time.Millisecond

// withDefaults fills in what was left empty.
func (o Options) withDefaults() Options {
	setDefault(&o.ClientID, "walrelay")
	setDefault(&o.Compression, "none")
	setDefault(&o.MaxInFlightRecords, 16_384)
	setDefault(&o.MaxInFlightBytes, 64<<20)
	setDefault(&o.BatchMaxBytes, 1_000_000)
	setDefault(&o.OnPoison, PoisonStop)
	setDefault(&o.Partitions, -1)
	setDefault(&o.Replication, -1)
	setDefault(&o.RefreshEvery, 30*time.Second)
	setDefault(&o.MissingEvery, 2*time.Second)
	setDefault(&o.RequestTimeout, 10*time.Second)
	if o.Result == nil {
		o.Result = func(event.Ticket, error) {}
	}
	if o.Dial == nil {
		d := &net.Dialer{Timeout: 10 * time.Second}
		o.Dial = d.DialContext
	}
	return o
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// Validate says in a sentence what is wrong with the options.
func (o Options) Validate() error {
	o = o.withDefaults()
	switch {
	case len(o.Brokers) == 0:
		return usage("no brokers are named", "set kafka.brokers to host:port addresses")
	case o.Linger < 0 || o.Linger > time.Minute:
		return usage(fmt.Sprintf("linger is %s, want 0 to 1m", o.Linger), "set kafka.linger, for instance 5ms")
	case o.MaxInFlightRecords < 1 || o.MaxInFlightBytes < 1:
		return usage(fmt.Sprintf("in-flight bounds are %d records and %d bytes, want at least 1", o.MaxInFlightRecords, o.MaxInFlightBytes),
			"leave them out to get the defaults")
	case o.BatchMaxBytes < 1024 || o.BatchMaxBytes > maxWideBytes:
		return usage(fmt.Sprintf("batch_max_bytes is %d, want 1024 to %d", o.BatchMaxBytes, maxWideBytes), "leave it out to get 1000000")
	case o.OnPoison != PoisonStop && o.OnPoison != PoisonDLQ && o.OnPoison != PoisonPark:
		return usage(fmt.Sprintf("poison policy %q is unknown, want park, dlq or stop", o.OnPoison), "set on_poison to one of them")
	case o.OnPoison == PoisonPark && o.Desk == nil:
		return usage("poison policy park has no place to put events aside", "let the source have its bookkeeping, or set on_poison to dlq or stop")
	case o.OnPoison == PoisonDLQ && o.DLQTopic == "":
		return usage("poison policy dlq has no topic", "set kafka.dlq_topic")
	case o.OnPoison == PoisonDLQ && !legalTopic(o.DLQTopic):
		return usage(fmt.Sprintf("dead-letter topic %q is no legal topic name", o.DLQTopic), "use letters, digits, dots, underscores and hyphens")
	}
	if _, err := codec(o.Compression); err != nil {
		return err
	}
	for topic, n := range o.PinPartitions {
		if n < 1 {
			return usage(fmt.Sprintf("topic %s is pinned to %d partitions, want at least 1", topic, n), "set a positive number or remove it")
		}
	}
	if err := o.TLS.validate(); err != nil {
		return err
	}
	return o.SASL.validate(o.TLS.Enable)
}

func codec(name string) (kgo.CompressionCodec, error) {
	switch name {
	case "", "none":
		return kgo.NoCompression(), nil
	case "lz4":
		return kgo.Lz4Compression(), nil
	case "zstd":
		return kgo.ZstdCompression(), nil
	case "snappy":
		return kgo.SnappyCompression(), nil
	case "gzip":
		return kgo.GzipCompression(), nil
	default:
		return kgo.NoCompression(), usage(fmt.Sprintf("compression %q is unknown", name), "use none, lz4, zstd, snappy or gzip")
	}
}

func usage(what, remedy string) *event.Error {
	return &event.Error{Class: event.Halt, Fault: event.FaultUsage, What: "kafka: " + what, Remedy: remedy, Anchor: AnchorOptions}
}
