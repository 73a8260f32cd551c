package mongo

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/walrelay/walrelay/hlc"
	"github.com/walrelay/walrelay/stage"
)

// Form says what a flush leaves in the database.
type Form uint8

// The forms. Readers of the topic see no difference.
const (
	// Documents stay in the outbox until the relay, or its retention, removes them.
	Documents Form = iota
	// DocumentsDeleted are inserted and deleted in the same transaction: the change
	// stream has them, the collection stays empty. For relays that read the stream and
	// keep no marks; a gap in the stream cannot be filled from the collection, and a
	// repeated event id is not noticed.
	DocumentsDeleted
)

// Options say how events are written. The zero value fits the collection that walrelay
// init makes.
type Options struct {
	// Collection is the outbox; "outbox" unless given.
	Collection string
	// Form is what a flush leaves: Documents unless given.
	Form Form
	// MaxEvents bounds the events of one flush; [stage.DefaultMaxEvents] unless given.
	MaxEvents int

	// PayloadAsText keeps the payload as a string, which the relay passes on byte for
	// byte. As a document, which is what other readers of this outbox expect, it
	// arrives with the same members and values, printed anew.
	PayloadAsText bool
	// OmitHLC leaves out field hlc. Readers then get no stamps, and no checkpoint is kept.
	OmitHLC bool
	// OmitTraceparent leaves out field traceparent.
	OmitTraceparent bool
	// AggregateVersion writes field aggregate_version (int64): the relay's schema has
	// to map it.
	AggregateVersion bool

	// Checkpoint is where the clock's high-water mark is kept: collection
	// hlc_checkpoint of the same database unless given.
	Checkpoint Checkpoint
	// NoCheckpoint keeps none: after a restart the clock begins at the wall clock, which
	// may be behind stamps that are out.
	NoCheckpoint bool

	// Autocommit allows a flush outside of a transaction. The event and the business
	// change are then two writes, of which one may fail, and so are the events of one
	// flush; the mark is raised first. DocumentsDeleted needs a transaction in any case.
	Autocommit bool

	// Clock stamps events; one is made unless given. A process needs one clock: give the
	// same to everything that stamps or observes, also to outboxes in other databases.
	Clock *hlc.Clock
	// Now is the wall clock; time.Now unless given.
	Now func() time.Time
}

// Validate says what is wrong with the options.
func (o *Options) Validate() error {
	var errs []error
	for _, c := range []struct{ name, collection string }{{"Collection", o.Collection}, {"Checkpoint.Collection", o.Checkpoint.Collection}} {
		if strings.ContainsAny(c.collection, "$\x00") || strings.HasPrefix(c.collection, "system.") {
			errs = append(errs, fmt.Errorf("%s %q is no name of a collection", c.name, c.collection))
		}
	}
	if strings.Contains(o.Checkpoint.NodeKey, "\x00") {
		errs = append(errs, fmt.Errorf("Checkpoint.NodeKey %q holds a NUL", o.Checkpoint.NodeKey))
	}
	if o.Form > DocumentsDeleted {
		errs = append(errs, fmt.Errorf("form %d is unknown", o.Form))
	}
	if o.MaxEvents < 0 || o.Checkpoint.Stripes < 0 {
		errs = append(errs, fmt.Errorf("MaxEvents %d or Checkpoint.Stripes %d is negative", o.MaxEvents, o.Checkpoint.Stripes))
	}
	return errors.Join(errs...)
}

// withDefaults fills in what was not given.
func (o Options) withDefaults() Options {
	if o.Collection == "" {
		o.Collection = "outbox"
	}
	if o.MaxEvents == 0 {
		o.MaxEvents = stage.DefaultMaxEvents
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Clock == nil {
		o.Clock = hlc.New(o.Now, hlc.DefaultMaxDrift)
	}
	o.NoCheckpoint = o.NoCheckpoint || o.OmitHLC
	return o
}
