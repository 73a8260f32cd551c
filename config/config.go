package config

import (
	"fmt"
	"io"
	"time"
)

// Config is the whole configuration. [Load] fills it; its values are effective:
// defaults, file, environment and flags are merged, and derived names (slot,
// publication) are in place.
type Config struct {
	// Name of this relay. It becomes part of default slot and publication names and of the Kafka client id, so two
	// relays on one database need two names. Letters, digits, `.`, `_` and `-`.
	Name string `yaml:"name" required:"true"`
	// How long a stop waits for what is in flight to be acknowledged and confirmed.
	Grace time.Duration `yaml:"grace" default:"30s"`
	// The databases to read, by a name of your choice (letters, digits, `_` and `-`). The name is a label of metrics.
	Sources Map[Source] `yaml:"sources" required:"true" key:"<source>"`
	// The broker to write to.
	Kafka Kafka `yaml:"kafka"`
	// Which events go where. The key is a route: an exact name, else the longest matching `prefix.*`, else `"*"`.
	// Without any, every event goes to the default topic of its source's schema.
	Routes Map[Route] `yaml:"routes" key:"<route>"`
	// How routes with `order: hlc` are put in order.
	Order Order `yaml:"order"`
	// Metrics, health and status.
	HTTP HTTP `yaml:"http"`
	// What is written to standard error.
	Log Log `yaml:"log"`

	origins map[string]Origin   // by path: where a given option stands
	hidden  map[string]struct{} // paths whose value came out of ${file:}
}

// Format writes what [Config.Print] does, under every verb: a configuration that
// strays into a message shows no secret.
func (c Config) Format(f fmt.State, _ rune) {
	_ = c.Print(struct{ io.Writer }{f})
}
