package mongo

import (
	"context"

	driver "go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/mongostream/bsonjson"
)

// AfterPublish says what happens to a row once its event is published.
type AfterPublish string

// The choices.
const (
	Keep   AfterPublish = "keep" // nothing is written; only the stream can do without
	MarkIt AfterPublish = "mark"
	Delete AfterPublish = "delete"
)

// ClaimMode says what stands for a claim while a row is under way.
type ClaimMode string

// The modes.
const (
	// ClaimRow writes processing and a token into the row: safe beside foreign pollers.
	ClaimRow ClaimMode = "row"
	// ClaimLease writes nothing: the lease of the shard is the claim.
	ClaimLease ClaimMode = "lease"
)

// MissingHLC says where rows without a stamp stand in the order of the table.
type MissingHLC string

// The places.
const (
	HLCFirst MissingHLC = "first" // as MongoDB sorts them
	HLCLast  MissingHLC = "last"  // as Postgres does
)

// Options of a source's collection.
type Options struct {
	// Source is the name in the configuration; Owner the key of walrelay's own documents
	// (it must differ between two relays on one database). Empty: Source.
	Source, Owner string
	// Client makes a client. It is called when one is first needed, and again when that failed; the
	// Database disconnects what it was given.
	Client func(ctx context.Context) (*driver.Client, error)
	// Classify gives an error of the server its class; doing says what was tried.
	Classify func(err error, doing string) error

	Database, Collection string
	Schema               event.Schema
	// Extra are fields that are carried besides the mapped ones, for additional headers.
	Extra []string
	// Format is how payloads are written that are documents or arrays.
	Format bsonjson.Options
	// MaxPayload is the largest payload that is taken, in bytes of BSON; a larger one is elided. Zero: any.
	MaxPayload   int64
	AfterPublish AfterPublish
	Claim        ClaimMode
	MissingHLC   MissingHLC
	// Bookkeeping begins the names of walrelay's own collections (walrelay); NoBookkeeping: none.
	Bookkeeping string
	// ParkedBudget bounds the events that are kept whole in the parking store (10 000).
	ParkedBudget int
}

// NoBookkeeping as Options.Bookkeeping: the database is not written to but for marks.
const NoBookkeeping = "none"

func (o Options) withDefaults() Options {
	fill(&o.Owner, o.Source)
	fill(&o.AfterPublish, MarkIt)
	fill(&o.Claim, ClaimRow)
	fill(&o.MissingHLC, HLCFirst)
	fill(&o.Bookkeeping, "walrelay")
	fill(&o.ParkedBudget, 10_000)
	return o
}

func fill[T comparable](v *T, otherwise T) {
	var zero T
	if *v == zero {
		*v = otherwise
	}
}
