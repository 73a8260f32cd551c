package inbox

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/walrelay/walrelay/hlc"
)

// Clock is what an inbox needs of a clock; *hlc.Clock is one.
type Clock interface {
	// Observe merges the stamp of an event, so that every later stamp of the clock
	// is greater. It refuses one that is too far ahead, and is then as it was.
	Observe(remote hlc.Stamp) (hlc.Stamp, error)
}

// Options say who reads, and how events are told apart.
type Options struct {
	// Route is the name of the reader: events are handled once for each. Required.
	Route string
	// ID finds the id in a record, before all else. Nil or an empty answer: the header.
	ID func(*Record) string
	// EventIDHeader holds the event id: forze_event_id by default; HeaderID for the
	// presets debezium and basic.
	EventIDHeader string
	// Clock takes in the stamps of events: the one that stamps what the handler
	// stages. Nil: stamps are not looked at, and reactions may sort before their causes.
	Clock Clock
	// TenantFromHeaders lets the header forze_tenant_id name the tenant. Headers are
	// not signed: set it only when nobody else can write to the topic.
	TenantFromHeaders bool
	// Execution names the execution that handles, for instance one that the context
	// carries. Nil or uuid.Nil: each handling gets a new id.
	Execution func(context.Context) uuid.UUID
	// OnRefused is told of each stamp that was not merged, with ErrMalformedStamp or
	// the error of the clock. It is called between the mark and the handler, from as
	// many goroutines as handle records.
	OnRefused func(Message, error)
}

// Inbox reads the records of one route. It may be used by several goroutines.
type Inbox struct {
	opts   Options
	counts counts
}

// New checks the options.
func New(opts Options) (*Inbox, error) {
	if opts.Route == "" {
		return nil, errors.New("an inbox needs a route: the name of the reader")
	}
	if opts.EventIDHeader == "" {
		opts.EventIDHeader = HeaderEventID
	}
	return &Inbox{opts: opts}, nil
}

// Route is that of the options.
func (in *Inbox) Route() string { return in.opts.Route }

// Stats are counts since the inbox was made.
type Stats struct {
	// Handled records: the handler returned no error. Its transaction may have failed
	// at the commit after that.
	Handled int64
	// Duplicates were skipped.
	Duplicates int64
	// Failed handlers and marks, each run counted.
	Failed int64
	// StampsMerged, StampsMalformed and StampsRefused (by the clock: too far ahead)
	// tell what became of the stamps; events without one count nowhere.
	StampsMerged, StampsMalformed, StampsRefused int64
}

type counts struct {
	handled, duplicates, failed, merged, malformed, refused atomic.Int64
}

// Stats returns the counts; each is right by itself, not all at one instant.
func (in *Inbox) Stats() Stats {
	c := &in.counts
	return Stats{
		Handled: c.handled.Load(), Duplicates: c.duplicates.Load(), Failed: c.failed.Load(),
		StampsMerged: c.merged.Load(), StampsMalformed: c.malformed.Load(), StampsRefused: c.refused.Load(),
	}
}
