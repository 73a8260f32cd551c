package hlc

import (
	"sync/atomic"
	"time"
)

// DefaultMaxDrift is how far ahead of the wall clock an observed stamp may be:
// what forze applications use.
const DefaultMaxDrift = 5 * time.Minute

// MaxClock is the greatest stamp that a clock can be led to from outside, by its
// wall clock, a remote stamp or a mark: 34 years before the end of the format, in
// the year 6395. The 2^56 stamps above it are for issuing only, so that there is
// always a greater one.
const MaxClock = Stamp((MaxPhysical-1<<40)<<16 | MaxLogical)

// Clock issues stamps that strictly increase. It is safe for concurrent use, and
// a process needs one: stamps of two clocks are not ordered.
type Clock struct {
	wall     func() time.Time
	maxDrift time.Duration
	// last is the greatest stamp issued, observed or resumed from. Each step is a pure
	// function of it, so that a compare-and-swap does for a lock.
	last atomic.Uint64
}

// New makes a clock that reads wall, usually time.Now; wall must be safe for
// concurrent use. Stamps of others may be up to maxDrift ahead of it; 0 stands for
// [DefaultMaxDrift], and a negative drift for none at all.
//
// A clock that goes on for an earlier process has to be resumed first; see
// [Clock.Resume].
func New(wall func() time.Time, maxDrift time.Duration) *Clock {
	if maxDrift == 0 {
		maxDrift = DefaultMaxDrift
	}
	return &Clock{wall: wall, maxDrift: max(maxDrift, 0)}
}

// Now issues a stamp, greater than all before: the wall clock's millisecond with
// counter 0, or where the clock is ahead of that, its own with the next counter.
func (c *Clock) Now() Stamp {
	at := stampAt(c.wall())
	for {
		last := c.last.Load()
		next := max(at, Stamp(last)+1)
		if c.last.CompareAndSwap(last, uint64(next)) {
			return next
		}
	}
}

// Observe takes in a stamp that came with a message, and issues one that is
// greater than it and than all before. A stamp that is more than the allowed drift
// ahead of the wall clock is refused with a [*DriftError]; the clock is then as if
// it had not been seen, and no stamp is issued.
//
// Observe an event once, after it is sure that it is no duplicate, and before
// anything is staged in reaction to it.
func (c *Clock) Observe(remote Stamp) (Stamp, error) {
	wall := c.wall()
	at := stampAt(wall)
	if remote > MaxClock || remote.PhysicalMillis()-at.PhysicalMillis() > c.maxDrift.Milliseconds() {
		return 0, &DriftError{Remote: remote, Wall: wall, MaxDrift: c.maxDrift}
	}
	for {
		last := c.last.Load()
		next := max(at, Stamp(last)+1, remote+1)
		if c.last.CompareAndSwap(last, uint64(next)) {
			return next, nil
		}
	}
}

// Resume raises the clock to a mark that an earlier process left, so that all
// further stamps are greater. It never lowers the clock and issues nothing. There
// is no bound of drift, because a mark that is ahead of the wall clock is just what
// a wall clock that stepped back leaves; only a mark above [MaxClock], which no
// clock can have left, is refused with a [*RangeError].
func (c *Clock) Resume(mark Stamp) error {
	if mark > MaxClock {
		return &RangeError{Mark: mark}
	}
	for {
		last := c.last.Load()
		if Stamp(last) >= mark || c.last.CompareAndSwap(last, uint64(mark)) {
			return nil
		}
	}
}

// Last is the greatest stamp that the clock issued, observed or was resumed from;
// 0 when there is none. It issues nothing.
func (c *Clock) Last() Stamp { return Stamp(c.last.Load()) }

// Lead is how far the clock is ahead of the wall clock, in whole milliseconds;
// 0 when it is not. A lead that lasts means that a wall clock, here or where
// stamps come from, was or is wrong.
func (c *Clock) Lead() time.Duration {
	ahead := c.Last().PhysicalMillis() - stampAt(c.wall()).PhysicalMillis()
	return time.Duration(max(ahead, 0)) * time.Millisecond
}

// stampAt is the first stamp of a time's millisecond. Times before 1970 and after
// MaxClock count as those: a wall clock that is as wrong as that must not break
// what the clock promises.
func stampAt(at time.Time) Stamp {
	return Stamp(min(max(at.UnixMilli(), 0), MaxClock.PhysicalMillis()) << 16)
}
