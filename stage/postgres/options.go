package postgres

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/hlc"
	"github.com/walrelay/walrelay/stage"
)

// Form says what a flush leaves in the database.
type Form uint8

// The forms. Readers of the topic see no difference.
const (
	// Rows stay in the outbox table until the relay, or its retention, removes them.
	Rows Form = iota
	// RowsDeleted are inserted and deleted in the same transaction: the log has them,
	// the table stays empty. For relays that read the log and keep no marks; a gap in the
	// log cannot be filled from the table, and a repeated event id is not noticed.
	RowsDeleted
	// Messages are written into the log alone, with pg_logical_emit_message. There is
	// no outbox table. The same holds as for RowsDeleted.
	Messages
)

// Options say how events are written. The zero value fits the tables that walrelay
// init makes in the schema public.
type Options struct {
	// Table is the outbox; public.outbox unless given.
	Table pgx.Identifier
	// Form is what a flush leaves: Rows unless given.
	Form Form
	// Prefix of logical messages; "outbox" unless given. It must be one of those in the
	// relay's configuration.
	Prefix string
	// MaxEvents bounds the events of one flush; [stage.DefaultMaxEvents] unless given.
	MaxEvents int

	// OmitHLC leaves out column hlc, for a table that has none. Readers then get no
	// stamps, and no checkpoint is kept.
	OmitHLC bool
	// OmitTraceparent leaves out column traceparent, for a table that has none.
	OmitTraceparent bool
	// AggregateVersion writes column aggregate_version (bigint), which walrelay init
	// does not make: the relay's schema has to map it.
	AggregateVersion bool

	// Checkpoint is where the clock's high-water mark is kept: hlc_checkpoint in the
	// schema of the outbox unless given.
	Checkpoint Checkpoint
	// NoCheckpoint keeps none: after a restart the clock begins at the wall clock, which
	// may be behind stamps that are out.
	NoCheckpoint bool

	// Autocommit allows a flush outside of a transaction. The event and the business
	// change are then two writes, of which one may fail. RowsDeleted needs a
	// transaction in any case.
	Autocommit bool

	// Clock stamps events; one is made unless given. A process needs one clock: give the
	// same to everything that stamps or observes.
	Clock *hlc.Clock
	// Now is the wall clock; time.Now unless given.
	Now func() time.Time
}

// Validate says what is wrong with the options.
func (o *Options) Validate() error {
	var errs []error
	for _, id := range []struct {
		name string
		id   pgx.Identifier
	}{{"Table", o.Table}, {"Checkpoint.Table", o.Checkpoint.Table}} {
		for _, part := range id.id {
			if part == "" {
				errs = append(errs, fmt.Errorf("%s %q has an empty part", id.name, id.id))
			}
		}
	}
	if o.Form > Messages {
		errs = append(errs, fmt.Errorf("form %d is unknown", o.Form))
	}
	if o.MaxEvents < 0 || o.Checkpoint.Stripes < 0 {
		errs = append(errs, fmt.Errorf("MaxEvents %d or Checkpoint.Stripes %d is negative", o.MaxEvents, o.Checkpoint.Stripes))
	}
	if strings.ContainsAny(o.Prefix, "/\x00") {
		errs = append(errs, fmt.Errorf("prefix %q: a slash ends a prefix", o.Prefix))
	}
	return errors.Join(errs...)
}

// withDefaults fills in what was not given.
func (o Options) withDefaults() Options {
	if len(o.Table) == 0 {
		o.Table = pgx.Identifier{"public", "outbox"}
	}
	if len(o.Checkpoint.Table) == 0 {
		beside := o.Table[:len(o.Table)-1]
		o.Checkpoint.Table = append(append(pgx.Identifier{}, beside...), "hlc_checkpoint")
	}
	if o.Prefix == "" {
		o.Prefix = "outbox"
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
