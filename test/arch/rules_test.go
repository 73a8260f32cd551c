package arch

// module is the path that imports of our own begin with.
const module = "github.com/walrelay/walrelay/"

// rule says what a shipped package may import besides the standard library.
// Imports go to a lower rank only (DESIGN.md, "The house").
type rule struct {
	rank int
	// ours are the packages of this module that may be imported.
	ours []string
	// foreign are the modules or packages (with all below) that may be imported.
	foreign []string
	// pure packages have no clock, log, goroutine or I/O: see impure.
	pure bool
	why  string
}

var rules = map[string]rule{
	"hlc": {
		rank: 1, pure: true,
		why: "stamps are arithmetic, and the clock is one word that is compared and swapped: its wall clock is given in; applications import it, so it must bring nothing along",
	},
	"event": {
		rank: 2, pure: true, ours: []string{"hlc"}, foreign: []string{"github.com/google/uuid"},
		why: "the nouns that all rooms share: whatever it imports, everything imports",
	},
	"decoder": {
		rank: 3, pure: true, ours: []string{"event", "hlc"},
		foreign: []string{"github.com/google/uuid", "github.com/jackc/pglogrepl"},
		why:     "bytes in, events out: it is fuzzed and replayed from transcripts, which a connection or a clock would prevent; uuid makes the id of a message that brings none (UUIDv5)",
	},
	"mongostream/bsonjson": {
		rank: 3, pure: true, ours: []string{"event"},
		why: "bytes in, bytes out: it is fuzzed, and judged by the driver's own encoder, which therefore only its tests may import",
	},
	"mongostream/document": {
		rank: 4, pure: true, ours: []string{"event", "mongostream/bsonjson"},
		foreign: []string{"go.mongodb.org/mongo-driver/v2/bson"},
		why:     "documents in, events out: the stream and the collection's reader make the same event of the same document, and it is fuzzed; bson reads an id back from its text",
	},
	"mongostream": {
		rank: 5, ours: []string{"event", "hlc", "mongostream/bsonjson", "mongostream/document"},
		foreign: []string{"go.mongodb.org/mongo-driver/v2"},
		why:     "the only room that follows a change stream; claims and marks are outbox/mongo's",
	},
	"slot": {
		rank: 4, ours: []string{"event", "decoder"},
		foreign: []string{"github.com/jackc/pgx/v5", "github.com/jackc/pglogrepl", "golang.org/x/sys/unix"},
		why:     "the only room that talks to Postgres; it decodes what it reads, so it alone of its rank knows the decoder; unix sets a socket option",
	},
	"router": {
		rank: 4, pure: true, ours: []string{"event", "hlc"},
		why: "the same event must give the same record on a redelivery: a clock or a random number would break that",
	},
	"publish": {
		rank: 4, ours: []string{"event"}, foreign: []string{"github.com/twmb/franz-go"},
		why: "the only room that talks to Kafka; it must not know where records come from",
	},
	"ack": {
		rank: 4, pure: true, ours: []string{"event"},
		why: "the window decides what is confirmed: small, and checked against a slow twin",
	},
	"reorder": {
		rank: 4, pure: true, ours: []string{"event", "hlc"},
		why: "watermarks come from the sources' own clocks, never from ours",
	},
	"outbox": {
		rank: 4, ours: []string{"event", "hlc"},
		why: "what is the same for every database: it speaks to tables through its own contracts",
	},
	"outbox/postgres": {
		rank: 5, ours: []string{"event", "outbox"}, foreign: []string{"github.com/jackc/pgx/v5"},
		why: "the SQL of the table; how to connect and what an error means is given in",
	},
	"outbox/mongo": {
		rank: 5, ours: []string{"event", "outbox", "mongostream/bsonjson", "mongostream/document"}, foreign: []string{"go.mongodb.org/mongo-driver/v2"},
		why: "the commands of the table; how to connect and what an error means is given in; a claimed document makes the same event as a streamed one",
	},
	"inbox": {
		rank: 2, ours: []string{"hlc"}, foreign: []string{"github.com/google/uuid", "go.opentelemetry.io/otel/propagation"},
		why: "applications that read events import it: no client of a broker, no driver, no logger; propagation is how a trace goes on",
	},
	"inbox/postgres": {
		rank: 3, ours: []string{"inbox"}, foreign: []string{"github.com/jackc/pgx/v5"},
		why: "the SQL of the marks, in transactions that applications open",
	},
	"inbox/mongo": {
		rank: 3, ours: []string{"inbox"}, foreign: []string{"go.mongodb.org/mongo-driver/v2"},
		why: "the commands of the marks, in transactions that applications open",
	},
	"stage": {
		rank: 4, ours: []string{"hlc"}, foreign: []string{"github.com/google/uuid", "go.opentelemetry.io/otel"},
		why: "a library for applications: what it imports, they import; of OpenTelemetry only what reads a span's context",
	},
	"stage/postgres": {
		rank: 5, ours: []string{"event", "hlc", "stage"}, foreign: []string{"github.com/google/uuid", "github.com/jackc/pgx/v5"},
		why: "a library for applications that writes in their transaction; of event only the errors, and nothing of the relay",
	},
	"stage/mongo": {
		rank: 5, ours: []string{"event", "hlc", "stage"}, foreign: []string{"github.com/google/uuid", "go.mongodb.org/mongo-driver/v2"},
		why: "a library for applications that writes in their transaction; of event only the errors, and nothing of the relay",
	},
	"relay": {
		rank: 5, ours: []string{"event", "hlc", "reorder", "router", "ack"},
		why: "the corridor knows rooms by the interfaces that it declares, so that each can be replaced in a test",
	},
	"capture": {
		rank: 6, ours: []string{"event", "slot", "mongostream", "outbox", "relay"}, foreign: []string{"github.com/google/uuid", "github.com/jackc/pgx/v5", "go.mongodb.org/mongo-driver/v2"},
		why: "it decides how a source is read, log or table, and so knows both; the corridor knows neither",
	},
	"ops": {
		rank: 6, ours: []string{"event", "relay"},
		foreign: []string{"github.com/prometheus/client_golang", "go.uber.org/zap"},
		why:     "it shows what the rooms report and decides nothing",
	},
	"config": {
		rank: 7, ours: []string{"event", "slot", "outbox", "outbox/postgres", "mongostream", "mongostream/bsonjson", "outbox/mongo", "router", "publish", "relay", "ops"},
		foreign: []string{"github.com/goccy/go-yaml"},
		why:     "it fills each room's own Options; no room knows the file",
	},
	"cmd/walrelay": {
		rank: 8, ours: []string{"event", "slot", "mongostream", "outbox", "outbox/postgres", "outbox/mongo", "capture", "router", "publish", "relay", "ops", "config"},
		foreign: []string{
			"github.com/spf13/cobra", "go.uber.org/zap", "github.com/twmb/franz-go/pkg/kgo", "github.com/twmb/franz-go/plugin/kzap",
			"github.com/google/uuid", "github.com/jackc/pgx/v5", "github.com/spf13/pflag", "go.mongodb.org/mongo-driver/v2",
		},
		why: "the front door: it parses, assembles and runs; pgx and uuid are for emit, which writes as an application would",
	},
	"examples/orders": {
		rank: 6, ours: []string{"stage", "stage/postgres"},
		foreign: []string{"github.com/google/uuid", "github.com/jackc/pgx/v5"},
		why:     "what an application needs, and no more than it would have",
	},
	"examples/catalog": {
		rank: 6, ours: []string{"stage", "stage/mongo"},
		foreign: []string{"github.com/google/uuid", "go.mongodb.org/mongo-driver/v2"},
		why:     "what an application needs, and no more than it would have",
	},
	"examples/payments": {
		rank: 6, ours: []string{"inbox", "inbox/postgres", "stage", "stage/postgres"},
		foreign: []string{"github.com/jackc/pgx/v5", "github.com/twmb/franz-go/pkg"},
		why:     "what an application needs, and no more than it would have",
	},
}

// impure are the standard packages that a pure one must not import, with the reason.
var impure = map[string]string{
	"net":           "I/O",
	"net/http":      "I/O",
	"os":            "I/O and environment",
	"io/fs":         "I/O",
	"syscall":       "I/O",
	"log":           "logging belongs to the edges",
	"log/slog":      "logging belongs to the edges",
	"math/rand":     "the same input must give the same output",
	"math/rand/v2":  "the same input must give the same output",
	"crypto/rand":   "the same input must give the same output",
	"context":       "nothing here waits",
	"sync":          "nothing here runs beside anything; sync/atomic is for counters that others read",
	"runtime/debug": "nothing here knows the process",
}

// forbiddenTime is what a pure package must not use of package time: it may
// format values, but neither ask for the present nor wait.
var forbiddenTime = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer"}
