package capture

import (
	"context"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

// Gear is what a source is doing, for people.
type Gear string

// The gears.
const (
	GearDeciding Gear = "deciding"
	GearCatchUp  Gear = "catch_up"
	GearLog      Gear = "log"
	GearPoll     Gear = "poll"
)

// Mode says how events are found.
type Mode string

// The modes.
const (
	ModeLog  Mode = "log"  // the log is followed
	ModePoll Mode = "poll" // the table is read, the log never
	ModeAuto Mode = "auto" // the log is followed, and while it cannot be the table is read
)

// Options of one source.
type Options struct {
	// ExitOnHalt returns errors that an operator must deal with instead of trying again.
	ExitOnHalt bool
	Log        Log
	// Mode says how events are found (ModeLog).
	Mode Mode
	// CatchUp: a position that is lost is made up for from the table, instead of halting.
	CatchUp bool
	// Marks: outcomes are written to the rows, so that the table says what is owed.
	Marks bool
	// Deletes: a published row is gone, and the table says no more what was published.
	Deletes bool
	// Notify: the server can say that rows were written.
	Notify bool
	Outbox outbox.Options
	// Tables looks at the source's tables and gives them; it is asked whenever a way of
	// reading is decided on. Leases and Parking are nil where nothing is claimed or put aside.
	Tables func(ctx context.Context) ([]outbox.Table, error)
	Leases outbox.Leases
	// Holder is the name under which this process holds leases; no other process, also
	// none before it, may have the same.
	Holder  string
	Parking outbox.Parking
	// ProbeEvery is how often a source that polls in place of the log looks whether
	// the log can be read again (10 s).
	ProbeEvery time.Duration
	// NoLookUp leaves the look-up below the start line out, to measure what it is worth.
	NoLookUp bool
}

// Observer hears what a source does. Every field may be nil; calls must not block.
type Observer struct {
	// Gear: the source changed how it reads, with the reason where there is one.
	Gear    func(g Gear, why string)
	State   func(event.State, event.Condition)
	Warning func(key string, c event.Condition)
	// Beat stands in for the loops of the log while the log is not followed.
	Beat      func()
	Scribe    outbox.ScribeObserver
	Poller    outbox.PollerObserver
	Tenancy   outbox.TenancyObserver
	Caretaker outbox.CaretakerObserver
}

// polls: the log is never read.
func (o *Options) polls() bool { return o.Mode == ModePoll }

// changesOver: while the log cannot be read, the table is.
func (o *Options) changesOver() bool { return o.Mode == ModeAuto && o.Marks }

// catchesUp: a gap is made up for from the table.
func (o *Options) catchesUp() bool { return o.changesOver() || o.CatchUp && o.Marks }
