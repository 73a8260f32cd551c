package relay

import (
	"time"

	"github.com/walrelay/walrelay/hlc"
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
	// Stalls counts how often that happened.
	Stalls int64
	// Still is the time since its server was last heard of.
	Still time.Duration
	// Lag is how far the watermark is behind the clock of the source's own server; Read says
	// whether that clock was read since the session began, and so whether Lag means anything.
	Lag  time.Duration
	Read bool
	// Age is how far the least stamp that the source holds is behind the same clock, or
	// behind ours where that one was not read; zero when nothing is held.
	Age time.Duration
}

// OrderFigures answers zero where no route asks for the order of stamps. It looks at
// everything that waits.
func (r *Relay) OrderFigures() OrderFigures {
	if r.sort == nil {
		return OrderFigures{}
	}
	s := r.sort
	s.mu.Lock()
	defer s.mu.Unlock()
	f := OrderFigures{Figures: s.buf.Figures()}
	oldest := s.buf.Oldest()
	for i := range s.sources {
		src := &s.sources[i]
		o := SourceOrder{
			Name: src.feed.Name, SourceFigures: s.buf.Source(i), Follows: src.attached, Stalled: src.stalled, Stalls: src.stalls,
		}
		if src.attached {
			o.Still = time.Since(src.advanced)
		}
		clock := time.Now()
		if !src.read.IsZero() {
			clock = time.UnixMicro(src.clock).Add(time.Since(src.read))
			o.Lag, o.Read = behind(clock, src.watermark), src.watermark > 0
		}
		if oldest[i] > 0 {
			o.Age = behind(clock, oldest[i])
		}
		f.Sources = append(f.Sources, o)
	}
	return f
}

func behind(clock time.Time, s hlc.Stamp) time.Duration {
	return max(0, clock.Sub(time.UnixMilli(s.PhysicalMillis())))
}
