package reorder

import (
	"slices"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/hlc"
)

// Jitter is taken off the time of a commit before it is believed, because times go back
// along one log: a server takes the time of a commit before it writes the commit's record,
// and a process that is held up in between writes an older time behind a newer one. That
// alone would do no harm, since what comes behind a record was written later than the time
// in it was taken; a second on top is for a clock that is set back a little. It costs
// something only in a backlog, where all readings are far ahead.
const Jitter = time.Second

// maxReadings bounds the readings that wait for the stream. 256 at a few a second are a
// minute's worth; behind by more, every second one goes.
const maxReadings = 256

// Bounds are the assumptions about the producers of one source.
type Bounds struct {
	// Transaction (T) is the longest time from an event's stamp until its commit's record
	// is in the log.
	Transaction time.Duration
	// Staged (T_pre) is the longest time from an event's stamp to the beginning of its
	// transaction: applications stamp first and begin at their first statement.
	Staged time.Duration
	// Skew (ε) is how far a producer's clock may be behind the server's. Clocks that are
	// ahead do no harm.
	Skew time.Duration
}

// Progress makes the watermark of one source out of what its own server said. It belongs
// to one log: when another one takes its place (a new timeline, another slot) begin
// anew. Not safe for concurrent use.
//
// The watermark is the greatest of lower bounds that hold for every event which has not
// been delivered:
//
//	once the stream has delivered up to a reading's At, such an event's commit was
//	written behind At, so after Now was read:
//	    committed ≥ Now                        ⇒ stamp ≥ Now - T - ε
//	and its transaction was open when activity was read, or began later:
//	    begun ≥ min(Now, Oldest)               ⇒ stamp ≥ min(Now, Oldest) - T_pre - ε
//	behind a commit that was delivered, so written after its time was taken:
//	    committed ≥ that commit's time         ⇒ stamp ≥ commit time - Jitter - T - ε
//
// The second is what makes a T of minutes cheap: it costs only while a transaction is really
// open for that long. The third moves on through a backlog, where all readings are far ahead.
type Progress struct {
	bounds    Bounds
	delivered event.Position
	// waiting readings, by At; both At and low strictly increase, since one that comes
	// later and says less is of no use.
	waiting []bound
	low     int64 // the running maximum, microseconds
}

// bound holds for what lies behind at.
type bound struct {
	at  event.Position
	low int64
}

// NewProgress begins at the stamp zero: nothing is known.
func NewProgress(b Bounds) *Progress {
	return &Progress{bounds: b, waiting: make([]bound, 0, maxReadings)}
}

// Sample takes a reading. It counts once the stream has delivered its position. Any
// subset of the readings would be right, so that readings may be dropped; fewer only make
// the watermark coarser.
func (p *Progress) Sample(r event.Reading) {
	low := r.NowMicros - p.bounds.Transaction.Microseconds()
	if r.OldestMicros > 0 {
		low = max(low, min(r.NowMicros, r.OldestMicros)-p.bounds.Staged.Microseconds())
	}
	b := bound{at: r.At, low: low - p.bounds.Skew.Microseconds()}
	if b.at.Compare(p.delivered) <= 0 {
		p.raise(b.low)
		return
	}
	for n := len(p.waiting); n > 0; n = len(p.waiting) {
		last := p.waiting[n-1]
		if last.at.Compare(b.at) < 0 || last.low > b.low {
			break
		}
		p.waiting = p.waiting[:n-1]
	}
	if n := len(p.waiting); n > 0 && p.waiting[n-1].low >= b.low {
		return
	}
	if len(p.waiting) == maxReadings {
		p.thin()
	}
	p.waiting = append(p.waiting, b)
}

// thin keeps the first, which is reached soonest, and every second one after it.
func (p *Progress) thin() {
	kept := p.waiting[:0]
	for i := 0; i < len(p.waiting); i += 2 {
		kept = append(kept, p.waiting[i])
	}
	p.waiting = kept
}

// Delivered says that the stream has handed over everything up to pos. commitMicros is
// the time of the commit that ends there, microseconds since 1970 UTC by the server's
// clock; zero when there is none (a keepalive).
func (p *Progress) Delivered(pos event.Position, commitMicros int64) {
	if commitMicros > 0 {
		p.raise(commitMicros - (Jitter + p.bounds.Transaction + p.bounds.Skew).Microseconds())
	}
	if pos.Compare(p.delivered) <= 0 {
		return
	}
	p.delivered = pos
	n := 0
	for n < len(p.waiting) && p.waiting[n].at.Compare(pos) <= 0 {
		n++
	}
	if n > 0 {
		p.raise(p.waiting[n-1].low)
		p.waiting = slices.Delete(p.waiting, 0, n)
	}
}

func (p *Progress) raise(micros int64) { p.low = max(p.low, micros) }

// Watermark is a stamp that no event which is still to be delivered is below, as long as
// the Bounds are true. It never goes back.
func (p *Progress) Watermark() hlc.Stamp { return atMicros(p.low) }

// Behind is the number of readings whose position the stream has not reached yet.
func (p *Progress) Behind() int { return len(p.waiting) }
