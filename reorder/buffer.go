package reorder

import (
	"time"

	"github.com/walrelay/walrelay/hlc"
)

// Item is one event on its way through the buffer.
type Item[T any] struct {
	// Source is the index of its source. The items of one source are added in the order
	// of its log.
	Source int
	// Stamp counts when Stamped.
	Stamp hlc.Stamp
	// CommitMicros is the commit time by the source's server, microseconds since 1970 UTC.
	// Without it (zero) a stamp cannot be judged: the item counts as Future and goes at once.
	CommitMicros int64
	// Key is a hash of topic and key; two keys with one hash are only kept in order where
	// they need not be. Zero: there is no order of a key to keep.
	Key uint64
	// Bytes is what the item counts against its source's budget.
	Bytes int64
	// Value is the caller's.
	Value   T
	Stamped bool
	// WithinKey keeps the order of the log among the items of this source and key that
	// ask for it.
	WithinKey bool
	// Found is set by Add and Pop.
	Found Found
}

// Buffer holds items until the watermark has passed them. Make it with New. Not safe for
// concurrent use.
type Buffer[T any] struct {
	heap    heap
	slots   []slot[T]
	free    []uint32
	heads   heads
	sources []source
	budget  int64
	drift   time.Duration
	arrival uint64

	watermark hlc.Stamp // minimum over the attached
	minimum   int       // the source that holds it; -1: none is attached
	released  place     // the greatest that went out
	any       bool      // something went out
	bytes     int64
	counters  Counters
}

type slot[T any] struct {
	item  Item[T]
	own   hlc.Stamp // effective stamp before raising
	tails uint32    // of its key; none
}

// New makes a buffer over sources with the indexes 0 to sources-1, none of them attached.
// budget is the number of bytes that each of them may hold. A stamp more than maxDrift
// beyond its commit counts as Future; 0 stands for DefaultMaxDrift.
func New[T any](sources int, budget int64, maxDrift time.Duration) *Buffer[T] {
	if maxDrift == 0 {
		maxDrift = DefaultMaxDrift
	}
	b := &Buffer[T]{sources: make([]source, sources), heads: newHeads(sources), budget: budget, drift: maxDrift}
	b.settle()
	return b
}

// Add takes an item and answers what it found; the same stands in the item's Found when
// it comes out. The item is held whatever was found: what to do about a late one is the
// caller's policy. Add does not ask for Room.
func (b *Buffer[T]) Add(it Item[T]) Found {
	own, found := effective(it.Stamp, it.Stamped, it.CommitMicros, b.drift)
	if b.any && own < b.released.stamp {
		found |= Late
	}
	b.arrival++
	s := slot[T]{own: own, tails: none}
	stamp, anchor := own, b.arrival
	if it.WithinKey && it.Key != 0 {
		stamp, anchor, s.tails = b.heads.join(it.Key, it.Source, own, b.arrival)
		if anchor != b.arrival {
			found |= Raised
		}
	}
	it.Found = found
	s.item = it
	p := place{stamp: stamp, lane: laneOf(it.Source, anchor), arrival: b.arrival}
	b.heap.push(node{place: p, slot: b.keep(s)})

	src := &b.sources[it.Source]
	src.items++
	src.bytes += it.Bytes
	b.bytes += it.Bytes
	src.counters.count(found)
	b.counters.count(found)
	return found
}

func (b *Buffer[T]) keep(s slot[T]) uint32 {
	if n := len(b.free); n > 0 {
		i := b.free[n-1]
		b.free = b.free[:n-1]
		b.slots[i] = s
		return i
	}
	b.slots = append(b.slots, s)
	return uint32(len(b.slots) - 1)
}

// Due reports whether Pop would give an item.
func (b *Buffer[T]) Due() bool { return len(b.heap) > 0 && b.due(&b.heap[0].place) }

// Pop gives the next item that may go: its place is below the watermark, or not above what
// has gone out already (a late one, or one raised behind what went out early).
func (b *Buffer[T]) Pop() (it Item[T], ok bool) {
	if !b.Due() {
		return it, false
	}
	return b.release(0), true
}

// due reports whether nothing that is still to come can stand before p, or whether
// waiting would not help any more.
func (b *Buffer[T]) due(p *place) bool {
	if p.stamp < b.watermark {
		return true
	}
	return b.any && (p.stamp < b.released.stamp || p.stamp == b.released.stamp && p.lane <= b.released.lane)
}

// Relieve gives up order for memory: the least item of the whole buffer goes, whether it
// is due or not. What comes later below it is late. source is the one that needs room.
func (b *Buffer[T]) Relieve(source int) (it Item[T], ok bool) {
	if len(b.heap) == 0 {
		return it, false
	}
	var found Found
	if !b.Due() {
		found = Early
		b.sources[source].counters.Early++
		b.counters.Early++
	}
	return b.release(found), true
}

func (b *Buffer[T]) release(found Found) Item[T] {
	n := b.heap.pop()
	s := &b.slots[n.slot]
	it := s.item
	src := &b.sources[it.Source]
	if s.tails != none && b.heads.leave(it.Key, s.tails, it.Source, s.own) {
		found |= Conflict
		src.counters.Conflicts++
		b.counters.Conflicts++
	}
	it.Found |= found
	if !b.any || b.released.before(&n.place) {
		b.released, b.any = n.place, true
	}
	*s = slot[T]{} // lets go of the value
	b.free = append(b.free, n.slot)
	src.items--
	src.bytes -= it.Bytes
	b.bytes -= it.Bytes
	return it
}
