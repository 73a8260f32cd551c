package ops

import "time"

// OrderFigures are a source's share in the order of stamps. Counts are since the start
// of the process.
type OrderFigures struct {
	// Bytes and Events wait for their place.
	Bytes, Events int64
	// Oldest is how far the smallest stamp that waits is behind the clock of the source's server.
	Oldest time.Duration
	// Lag is how far the watermark is behind that clock, and Watermark what it is; both mean
	// nothing until the clock was read: LagKnown.
	Lag       time.Duration
	Watermark time.Time
	LagKnown  bool
	// Detached: the others do not wait for the source. Stalled: because it said nothing.
	Detached, Stalled bool

	Stalls, Late, Early, Future, Unstamped, Raised, Conflicts int64
}

func (s *Source) order() (f OrderFigures, asked bool) {
	if probe := s.probes.Load().Order; probe != nil {
		return probe(), true
	}
	return f, false
}

func (s *Source) inversions() (n int64, stamped bool) {
	if probe := s.probes.Load().Inversions; probe != nil {
		return probe()
	}
	return 0, false
}

func (s *Source) collectOrder(e emitter) {
	if n, stamped := s.inversions(); stamped {
		e.put(metricInversions, float64(n), s.name)
	}
	f, asked := s.order()
	if !asked {
		return
	}
	e.put(metricOrderBytes, float64(f.Bytes), s.name)
	e.put(metricOrderEvents, float64(f.Events), s.name)
	e.put(metricOrderOldest, f.Oldest.Seconds(), s.name)
	if f.LagKnown {
		e.put(metricOrderLag, f.Lag.Seconds(), s.name)
	}
	e.put(metricOrderDetached, truth(f.Detached), s.name)
	e.put(metricOrderStalls, float64(f.Stalls), s.name)
	e.put(metricOrderLate, float64(f.Late), s.name)
	e.put(metricOrderEarly, float64(f.Early), s.name)
	e.put(metricOrderFuture, float64(f.Future), s.name)
	e.put(metricOrderUnstamped, float64(f.Unstamped), s.name)
	e.put(metricOrderRaised, float64(f.Raised), s.name)
	e.put(metricOrderConflicts, float64(f.Conflicts), s.name)
}

// OrderStatus is a source's share in the order of stamps. Counts are since the start of the process.
type OrderStatus struct {
	// Watermark and its lag, by the clock of the source's server; absent until that was read.
	Watermark           *time.Time `json:"watermark,omitempty"`
	WatermarkLagSeconds *float64   `json:"watermark_lag_seconds,omitempty"`
	// Held are events that wait for their place.
	Held             int64   `json:"held"`
	HeldBytes        int64   `json:"held_bytes"`
	OldestAgeSeconds float64 `json:"oldest_age_seconds"`
	// Detached: the others do not wait for the source. Stalled: because it said nothing.
	Detached  bool  `json:"detached"`
	Stalled   bool  `json:"stalled"`
	Stalls    int64 `json:"stalls"`
	Late      int64 `json:"late"`
	Early     int64 `json:"early"`
	Future    int64 `json:"future"`
	Unstamped int64 `json:"unstamped"`
	Raised    int64 `json:"raised"`
	Conflicts int64 `json:"conflicts"`
}

func (s *Source) orderStatus() *OrderStatus {
	f, asked := s.order()
	if !asked {
		return nil
	}
	st := &OrderStatus{
		Held: f.Events, HeldBytes: f.Bytes, OldestAgeSeconds: f.Oldest.Seconds(), Detached: f.Detached, Stalled: f.Stalled,
		Stalls: f.Stalls, Late: f.Late, Early: f.Early, Future: f.Future, Unstamped: f.Unstamped, Raised: f.Raised, Conflicts: f.Conflicts,
	}
	if f.LagKnown {
		st.Watermark, st.WatermarkLagSeconds = new(f.Watermark.UTC()), new(f.Lag.Seconds())
	}
	return st
}
