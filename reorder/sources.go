package reorder

import (
	"math"

	"github.com/walrelay/walrelay/hlc"
)

// source is what the buffer knows of one source.
type source struct {
	watermark hlc.Stamp
	attached  bool
	items     int
	bytes     int64
	counters  Counters
}

// Attach lets a source count in the minimum, with the watermark that it has (zero at first):
// nothing goes out beyond it. Attaching twice is once.
func (b *Buffer[T]) Attach(source int) {
	b.sources[source].attached = true
	b.settle()
}

// Detach takes a source out of the minimum. What it holds stays and goes out in order;
// what it adds from now on may be late. When none is left everything may go.
func (b *Buffer[T]) Detach(source int) {
	b.sources[source].attached = false
	b.settle()
}

// Advance says that nothing below w comes from this source any more (Progress.Watermark).
// A smaller one than before is ignored.
func (b *Buffer[T]) Advance(source int, w hlc.Stamp) {
	s := &b.sources[source]
	if w <= s.watermark {
		return
	}
	s.watermark = w
	if s.attached {
		b.settle()
	}
}

// settle finds the minimum: above all stamps when none is attached. Of several that hold it
// the first one is taken, so that exactly one is gated.
func (b *Buffer[T]) settle() {
	b.watermark, b.minimum = math.MaxUint64, -1
	for i := range b.sources {
		if s := &b.sources[i]; s.attached && s.watermark < b.watermark {
			b.watermark, b.minimum = s.watermark, i
		}
	}
}

// Room reports whether a source may add an item of so many bytes. One that is larger than
// the whole budget has room when its source holds nothing.
func (b *Buffer[T]) Room(source int, bytes int64) bool {
	s := &b.sources[source]
	return s.items == 0 || s.bytes+bytes <= b.budget
}

// Gated reports whether this source holds the minimum itself. It must not be made to wait
// for room then: nothing but its own reading on moves the watermark. Of the attached
// sources exactly one is gated.
func (b *Buffer[T]) Gated(source int) bool { return b.minimum == source }
