package reorder

import "github.com/walrelay/walrelay/hlc"

// Counters count items since the buffer was made; see Found for what each means.
type Counters struct {
	Late, Future, Unstamped, Raised, Conflicts, Early uint64
}

func (c *Counters) count(f Found) {
	if f == 0 {
		return
	}
	for _, p := range [...]struct {
		found Found
		n     *uint64
	}{{Late, &c.Late}, {Future, &c.Future}, {Unstamped, &c.Unstamped}, {Raised, &c.Raised}} {
		if f.Has(p.found) {
			*p.n++
		}
	}
}

// Figures are what the buffer holds and did.
type Figures struct {
	Items int
	Bytes int64
	// Oldest is the effective stamp of the item that goes next; zero when nothing is
	// held. A source's clock minus its physical part is how long that one has waited.
	Oldest hlc.Stamp
	// Watermark is the minimum over the attached sources; zero when none is attached.
	Watermark hlc.Stamp
	// Released is the greatest effective stamp that went out; zero when none did.
	Released hlc.Stamp
	Counters
}

// Figures of the whole buffer.
func (b *Buffer[T]) Figures() Figures {
	f := Figures{Items: len(b.heap), Bytes: b.bytes, Released: b.released.stamp, Counters: b.counters}
	if len(b.heap) > 0 {
		f.Oldest = b.heap[0].stamp
	}
	if b.minimum >= 0 {
		f.Watermark = b.watermark
	}
	return f
}

// SourceFigures are the share of one source.
type SourceFigures struct {
	Items     int
	Bytes     int64
	Watermark hlc.Stamp
	Attached  bool
	Counters
}

// Source gives the figures of one source. Early counts what went out for its sake.
func (b *Buffer[T]) Source(source int) SourceFigures {
	s := &b.sources[source]
	return SourceFigures{Items: s.items, Bytes: s.bytes, Watermark: s.watermark, Attached: s.attached, Counters: s.counters}
}
