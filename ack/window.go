package ack

import (
	"sync/atomic"

	"github.com/walrelay/walrelay/event"
)

// consumed marks an entry that Low has passed. It can be told from every count,
// so that Low and Idle can claim an entry from each other by compare-and-swap.
const consumed = -1

type entry struct {
	pending atomic.Int64
	// end is written by the opener while pending > 0 and read by Low after it
	// saw 0; the atomics order the two.
	end    event.Position
	events int
	micros int64
	idle   bool
}

// Window is the set of unconfirmed transactions of one source, in log order.
type Window struct {
	ring []entry
	mask uint64
	tail atomic.Uint64 // next entry to open; written by the feeder alone
	head atomic.Uint64 // oldest unconfirmed entry; written by the committer alone
}

// NewWindow makes a window of at least size entries (rounded up to a power of two).
func NewWindow(size int) *Window {
	n := 1
	for n < size {
		n <<= 1
	}
	return &Window{ring: make([]entry, n), mask: uint64(n - 1)}
}

// Full reports whether the next Open would fail.
func (w *Window) Full() bool { return w.tail.Load()-w.head.Load() > w.mask }

// Len is the number of entries that are not confirmed yet.
func (w *Window) Len() int { return int(w.tail.Load() - w.head.Load()) }

// Open begins a transaction and returns its entry, or false when the window is
// full. Feeder only. The entry stays open until Close.
func (w *Window) Open() (seq uint64, ok bool) {
	if w.Full() {
		return 0, false
	}
	seq = w.tail.Load()
	e := &w.ring[seq&w.mask]
	e.idle, e.events = false, 0
	e.pending.Store(1)
	w.tail.Store(seq + 1)
	return seq, true
}

// Add counts n more events of an open entry. Feeder only, before the events are published.
func (w *Window) Add(seq uint64, n int) {
	e := &w.ring[seq&w.mask]
	e.events += n
	e.pending.Add(int64(n))
}

// Close ends the transaction: end is its commit's end, micros its commit time in
// microseconds since 1970. Feeder only. It reports whether the entry is complete with that.
func (w *Window) Close(seq uint64, end event.Position, micros int64) bool {
	e := &w.ring[seq&w.mask]
	e.end, e.micros = end, micros
	return e.pending.Add(-1) == 0
}

// Idle enters a place where the log moved on without events: the entry is
// complete at once. Feeder only; false when the window is full. A run of idle
// places takes one entry.
func (w *Window) Idle(end event.Position) bool {
	if tail := w.tail.Load(); tail > w.head.Load() {
		last := &w.ring[(tail-1)&w.mask]
		// Low may be about to take this entry: whoever swaps first has it.
		if last.idle && last.pending.CompareAndSwap(0, 1) {
			last.end = end
			last.pending.Store(0)
			return true
		}
	}
	if w.Full() {
		return false
	}
	seq := w.tail.Load()
	e := &w.ring[seq&w.mask]
	e.idle = true
	e.end = end
	e.pending.Store(0)
	w.tail.Store(seq + 1)
	return true
}

// Done takes one event off an entry. It reports whether the entry is complete
// with that, so that the committer is worth waking.
func (w *Window) Done(seq uint64) bool {
	return w.ring[seq&w.mask].pending.Add(-1) == 0
}

// Low takes every complete entry off the front and returns the end of the last
// one; false when there was none. visit, which may be nil, is called for each
// transaction that had events. Committer only.
func (w *Window) Low(visit func(events int, commitMicros int64)) (event.Position, bool) {
	var low event.Position
	head, tail := w.head.Load(), w.tail.Load()
	start := head
	for ; head < tail; head++ {
		e := &w.ring[head&w.mask]
		if !e.pending.CompareAndSwap(0, consumed) {
			break
		}
		low = e.end
		if visit != nil && !e.idle {
			visit(e.events, e.micros)
		}
	}
	w.head.Store(head)
	return low, head != start
}
