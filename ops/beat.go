package ops

import (
	"sync/atomic"
	"time"
)

// Beat belongs to one main loop and says that the loop makes steps. A loop that
// waits legally (for room, for a broker) beats on its timers: the question is
// whether the loop is stuck, not whether others are well.
type Beat struct {
	name   string
	maxAge time.Duration
	clock  func() time.Time
	base   time.Time
	last   atomic.Int64 // nanoseconds after base; keeps the monotonic reading
	ended  atomic.Bool
}

// Loop registers a main loop that may stay without a step for at most maxAge.
// The registration counts as its first step. A loop that is started again
// registers again under its name.
func (o *Ops) Loop(name string, maxAge time.Duration) *Beat {
	b := &Beat{name: name, maxAge: maxAge, clock: o.clock, base: o.started}
	b.Beat()
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, other := range o.mu.loops {
		if other.name == name {
			o.mu.loops[i] = b
			return b
		}
	}
	o.mu.loops = append(o.mu.loops, b)
	return b
}

// Beat says that the loop made a step. Safe for any goroutine.
func (b *Beat) Beat() { b.last.Store(int64(b.clock().Sub(b.base))) }

// End says that the loop ended on purpose and is not expected to beat again.
func (b *Beat) End() { b.ended.Store(true) }

func (b *Beat) age(now time.Time) time.Duration {
	return max(now.Sub(b.base)-time.Duration(b.last.Load()), 0)
}
