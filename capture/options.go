package capture

import (
	"context"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/slot"
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

// Options of one source.
type Options struct {
	// ExitOnHalt returns errors that an operator must deal with instead of trying again.
	ExitOnHalt bool
	// Slot says also how events are found, what a gap leads to, and what is written back.
	Slot   slot.Options
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
	Stream    slot.Observer // State and Warning are taken from above
	Scribe    outbox.ScribeObserver
	Poller    outbox.PollerObserver
	Tenancy   outbox.TenancyObserver
	Caretaker outbox.CaretakerObserver
}

// polls: the log is never read.
func (o *Options) polls() bool { return o.Slot.Capture == slot.CapturePoll }

// marks: outcomes are written to the rows, so that the table says what is owed.
func (o *Options) marks() bool {
	return len(o.Slot.Tables) > 0 && o.Slot.WriteBack != "" && o.Slot.WriteBack != slot.KeepRows
}

// changesOver: while the log cannot be read, the table is.
func (o *Options) changesOver() bool { return o.Slot.Capture == slot.CaptureAuto && o.marks() }

// catchesUp: a gap is made up for from the table.
func (o *Options) catchesUp() bool {
	return o.changesOver() || o.Slot.OnGap == slot.GapCatchUp && o.marks()
}

// deletes: a published row is gone, and the table says no more what was published.
func (o *Options) deletes() bool { return o.Slot.WriteBack == slot.DeleteRows }

// startLine is the end of the log now.
func (o *Options) startLine(ctx context.Context) (event.LSN, error) {
	conn, err := slot.Connect(ctx, o.Slot)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return slot.LogEnd(ctx, conn)
}
