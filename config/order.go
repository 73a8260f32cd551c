package config

import (
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/relay"
)

// Order is how routes with `order: hlc` are put in order. An event is released once no event with a smaller stamp can come
// any more: when its stamp lies before the beginning of every open transaction, or `transaction` in the past, by the clock of
// its database.
type Order struct {
	// The longest time from an event's stamp to the commit of its transaction. It bounds the wait where open transactions
	// cannot be seen, or stay open.
	Transaction time.Duration `yaml:"transaction" default:"10s"`
	// The longest time from an event's stamp to the begin of its transaction, for applications that stage events before
	// they open one.
	Staged time.Duration `yaml:"staged" default:"500ms"`
	// How far the clock of an application may be behind that of the database.
	ClockError time.Duration `yaml:"clock_error" default:"250ms" zero:"true"`
	// A stamp that is further ahead of the commit of its event counts as faulty: the event takes the place of its commit.
	MaxDrift time.Duration `yaml:"max_drift" default:"5m"`
	// Memory for the events that wait, for each source. What does not fit waits in the database as long as that helps; else
	// the smallest stamps are released early, and counted.
	BufferBytes Size `yaml:"buffer_bytes" default:"64MiB"`
	// Time between two looks at the clock and the open transactions of a database.
	Every time.Duration `yaml:"every" default:"200ms"`
	// What happens to an event whose stamp is smaller than one that was released: `emit` publishes it at once and counts it, `halt`
	// stops its source.
	Late string `yaml:"late" default:"emit" enum:"emit|halt"`
	// Adds the header `walrelay_late: 1` to late events.
	LateHeader bool `yaml:"late_header" default:"false"`
	// What happens when a source says nothing of its clock: `detach` goes on without it after `stall_after`, and counts what it
	// brings afterwards as late; `block` waits.
	OnSourceStall string `yaml:"on_source_stall" default:"detach" enum:"detach|block"`
	// How long a source may say nothing before it is detached.
	StallAfter time.Duration `yaml:"stall_after" default:"30s"`
}

// order is the order as the rooms know it.
func (r *Route) order() event.Order {
	switch {
	case r.Order != "hlc":
		return event.ByCommit
	case r.WithinKey == "commit":
		return event.ByStampWithinCommit
	}
	return event.ByStamp
}

// ordered reports whether some route asks for the order of stamps.
func (c *Config) ordered() bool {
	for i := range c.Routes {
		if c.Routes[i].Value.Order == "hlc" {
			return true
		}
	}
	return false
}

// OrderOptions are the options of the relay for the order of stamps; nil where no
// route asks for it.
func (c *Config) OrderOptions() *relay.Ordering {
	if !c.ordered() {
		return nil
	}
	o := &relay.Ordering{
		Transaction: c.Order.Transaction,
		Staged:      c.Order.Staged,
		ClockError:  c.Order.ClockError,
		MaxDrift:    c.Order.MaxDrift,
		BufferBytes: int64(c.Order.BufferBytes),
		Every:       c.Order.Every,
		HaltOnLate:  c.Order.Late == "halt",
		LateHeader:  c.Order.LateHeader,
	}
	if c.Order.OnSourceStall == "detach" {
		o.StallAfter = c.Order.StallAfter
	}
	return o
}
