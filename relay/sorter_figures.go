package relay

import (
	"time"

	"github.com/walrelay/walrelay/reorder"
)

// OrderFigures are what the order of stamps costs and finds.
type OrderFigures struct {
	reorder.Figures
	Sources []SourceOrder
}

// SourceOrder is the share of one feed.
type SourceOrder struct {
	Name string
	reorder.SourceFigures
	// Follows: the source can say what is still to come. Stalled: it has not for so long that
	// the others go on without it.
	Follows, Stalled bool
	// Still is the time since its server was last heard of.
	Still time.Duration
}

// OrderFigures answers zero where no route asks for the order of stamps.
func (r *Relay) OrderFigures() OrderFigures {
	if r.sort == nil {
		return OrderFigures{}
	}
	s := r.sort
	s.mu.Lock()
	defer s.mu.Unlock()
	f := OrderFigures{Figures: s.buf.Figures()}
	for i := range s.sources {
		src := &s.sources[i]
		o := SourceOrder{
			Name: src.feed.Name, SourceFigures: s.buf.Source(i), Follows: src.attached, Stalled: src.stalled,
		}
		if src.attached {
			o.Still = time.Since(src.advanced)
		}
		f.Sources = append(f.Sources, o)
	}
	return f
}
