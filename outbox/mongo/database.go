package mongo

import (
	"context"
	"sync"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/walrelay/walrelay/event"
)

// silenceTimeout bounds a call on a server that says nothing, whatever the caller allows.
const silenceTimeout = 45 * time.Second

// Database is one source's database. It connects when it is first asked; the driver
// remakes connections that break.
type Database struct {
	o Options

	mu     sync.Mutex
	client *driver.Client
	closed bool
}

// New makes a Database. It does not connect.
func New(o Options) *Database { return &Database{o: o.withDefaults()} }

// Close ends the connections. Calls that are under way fail.
func (d *Database) Close(ctx context.Context) error {
	d.mu.Lock()
	client := d.client
	d.client, d.closed = nil, true
	d.mu.Unlock()
	if client == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_ = client.Disconnect(ctx) // what it could not end in time, it has closed
	return nil
}

func (d *Database) connect(ctx context.Context) (*driver.Client, error) {
	d.mu.Lock()
	client, closed := d.client, d.closed
	d.mu.Unlock()
	switch {
	case closed:
		return nil, errClosed()
	case client != nil:
		return client, nil
	}
	fresh, err := d.o.Client(ctx)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || d.client != nil { // somebody was quicker
		go func() { _ = fresh.Disconnect(context.WithoutCancel(ctx)) }()
	} else {
		d.client = fresh
	}
	if d.closed {
		return nil, errClosed()
	}
	return d.client, nil
}

func errClosed() error {
	return &event.Error{Class: event.Retry, What: "the connections to the collection were closed", Anchor: anchorUnreachable}
}

// with calls f with one of the database's collections, whatever the client's URL says about
// reading: from the primary, and its newest state; writes wait for the majority. doing completes the
// sentence "… failed"; the error is classified.
func (d *Database) with(ctx context.Context, collection, doing string, f func(ctx context.Context, c *driver.Collection) error) error {
	ctx, cancel := context.WithTimeout(ctx, silenceTimeout)
	defer cancel()
	client, err := d.connect(ctx)
	if err == nil {
		err = f(ctx, client.Database(d.o.Database).Collection(collection, options.Collection().
			SetReadPreference(readpref.Primary()).SetReadConcern(readconcern.Local()).SetWriteConcern(journaledMajority)))
	}
	return d.classify(err, doing)
}

// journaledMajority says j because a server may be told that majority does not mean it.
var journaledMajority = &writeconcern.WriteConcern{W: "majority", Journal: new(true)}

func (d *Database) classify(err error, doing string) error {
	if err == nil {
		return nil
	}
	return d.o.Classify(err, doing)
}

func (d *Database) parkedCollection() string { return d.o.Bookkeeping + "_parked" }

func (d *Database) leasesCollection() string { return d.o.Bookkeeping + "_leases" }
