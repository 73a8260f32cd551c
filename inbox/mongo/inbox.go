package mongo

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"github.com/walrelay/walrelay/inbox"
)

// DefaultPatience outlasts a transaction whose process died, which the server gives up
// after 60 to 90 s unless told otherwise.
//
// Source: MongoDB, src/mongo/db/periodic_runner_job_abort_expired_transactions.cpp: it
// looks each half of transactionLifetimeLimitSeconds.
const DefaultPatience = 2 * time.Minute

// Options of an inbox in MongoDB.
type Options struct {
	// Collection of the marks; "inbox" unless given.
	Collection string
	// Runs is how often Process runs a transaction that conflicts with others, the first
	// run included; 5 when 0.
	Runs int
	// Patience is how long Process goes on, beside those runs, while another open
	// transaction holds the record's mark; [DefaultPatience] when 0.
	Patience time.Duration
}

// Inbox reads the records of one route once each. It may be used by several
// goroutines.
type Inbox struct {
	*inbox.Inbox
	opts  Options
	db    *mongo.Database
	marks *mongo.Collection
}

// New joins an inbox with a collection of db. It does not look whether that is there.
// The inbox belongs to db and its client for good: see [ErrOtherClient].
func New(in *inbox.Inbox, db *mongo.Database, opts Options) (*Inbox, error) {
	if strings.ContainsAny(opts.Collection, "$\x00") || strings.HasPrefix(opts.Collection, "system.") {
		return nil, fmt.Errorf("%q is no name of a collection for the inbox", opts.Collection)
	}
	if opts.Patience < 0 {
		return nil, fmt.Errorf("patience of %s is negative", opts.Patience)
	}
	switch {
	case opts.Runs < 0:
		return nil, fmt.Errorf("%d runs of a transaction: at least one is needed", opts.Runs)
	case opts.Runs == 0:
		opts.Runs = inbox.DefaultRuns
	}
	if opts.Patience == 0 {
		opts.Patience = DefaultPatience
	}
	return &Inbox{in, opts, db, marks(db, opts.Collection)}, nil
}

// marks are read where they are written, whatever the client prefers.
func marks(db *mongo.Database, name string) *mongo.Collection {
	if name == "" {
		name = "inbox"
	}
	return db.Collection(name, options.Collection().SetReadPreference(readpref.Primary()))
}

var (
	// ErrNoTransaction: the context of Handle has no open transaction.
	ErrNoTransaction = errors.New("no transaction")
	// ErrOtherClient: the context of Handle has a session of another client than the
	// inbox, as with a client that picks a database for each tenant. Whether a record
	// was handled is known in one database only. Make an inbox for each client.
	ErrOtherClient = errors.New("session of another client")
	// ErrNotYours is the error of a handler that ended the transaction of its mark.
	ErrNotYours = inbox.ErrNotYours
)
