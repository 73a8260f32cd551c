package ops

import (
	"sync/atomic"
	"time"

	"github.com/walrelay/walrelay/event"
)

// SourceProbes are read whenever somebody looks: at a scrape, at a probe, once a
// second. They must not block, and may be called from several goroutines. A nil
// probe means that the source has no such thing.
type SourceProbes struct {
	// Progress is the ladder of positions; zero for sources without LSNs.
	Progress func() event.Progress
	// ClusterTimes: what Progress gives are no LSNs but MongoDB's cluster times, seconds
	// since 1970 in the upper half and an increment in the lower.
	ClusterTimes bool
	// State is what the source is doing, and why it is not ready.
	State func() (event.State, event.Condition)
	// InFlight counts the payload bytes and the events that were read and are not
	// yet acknowledged.
	InFlight func() (bytes, events int64)
	// Order is what the order of stamps costs and finds; nil where no route asks for it.
	Order func() OrderFigures
	// Inversions counts events in commit order whose stamp is below an earlier one of their key;
	// stamped: there was one with a stamp.
	Inversions func() (n int64, stamped bool)
}

// Source is what is known of one source.
type Source struct {
	name   string
	ops    *Ops
	probes atomic.Pointer[SourceProbes]

	received, receivedBytes, published, deferred, reconnects atomic.Int64

	ignored, refused tally[atomic.Int64]
	commitToAck      latency
	slot             atomic.Pointer[event.SlotReport]
	slotTaken        atomic.Int64 // nanoseconds after Ops.started
	stream           atomic.Pointer[event.StreamReport]
	streamTaken      atomic.Int64 // nanoseconds after Ops.started

	commitPublished atomic.Int64 // microseconds since 1970 UTC, by the server's clock
	caughtUp        atomic.Int64 // microseconds since 1970 UTC, by ours

	table table

	receivedRate, publishedRate rate
	lastState                   atomic.Pointer[event.State]
}

func newSource(o *Ops, name string, probes SourceProbes) *Source {
	s := &Source{name: name, ops: o}
	s.ignored.limit, s.refused.limit = maxReasons, maxReasons
	s.probes.Store(&probes)
	return s
}

// Received counts events taken from the source and the bytes of their payloads.
func (s *Source) Received(events int, bytes int64) {
	s.received.Add(int64(events))
	s.receivedBytes.Add(bytes)
}

// Published counts events of one transaction, or of one batch that ends with it,
// that Kafka acknowledged just now. commitMicros is the commit's time by the
// server's clock, microseconds since 1970 UTC.
func (s *Source) Published(events int, commitMicros int64) {
	s.published.Add(int64(events))
	s.commitToAck.observe(time.Duration(s.ops.clock().UnixMicro()-commitMicros)*time.Microsecond, events)
	raise(&s.commitPublished, commitMicros)
}

// Ignored counts rows or messages that are not for us. reason is one of a few fixed words.
func (s *Source) Ignored(reason string, n int) {
	s.ignored.of(reason).Add(int64(n))
	if reason == "truncate" {
		s.ops.facts.Truncated(s.name, n)
	}
}

// Deferred counts events that stay in the table for later.
func (s *Source) Deferred(n int) { s.deferred.Add(int64(n)) }

// Refused counts one event that cannot be published as it is. reason is one of a
// few fixed words, never an error's text; topic may be empty.
func (s *Source) Refused(topic, reason string) {
	s.refused.of(reason).Add(1)
	if topic != "" {
		s.ops.topics.of(topic).refused.Add(1)
	}
}

// Reconnected counts a connection made again after a loss.
func (s *Source) Reconnected() { s.reconnects.Add(1) }

// SlotReport takes what the server says of the slot.
func (s *Source) SlotReport(r event.SlotReport) {
	s.slotTaken.Store(int64(s.ops.clock().Sub(s.ops.started)))
	s.slot.Store(&r)
}

func (s *Source) progress() event.Progress {
	if f := s.probes.Load().Progress; f != nil {
		return f()
	}
	return event.Progress{}
}

func (s *Source) state() (event.State, event.Condition) {
	if f := s.probes.Load().State; f != nil {
		return f()
	}
	return event.StateStarting, event.Condition{}
}

func (s *Source) inFlight() (bytes, events int64) {
	if f := s.probes.Load().InFlight; f != nil {
		return f()
	}
	return 0, 0
}

// watch is the step of Ops.Run.
func (s *Source) watch(now time.Time) {
	s.receivedRate.step(now, s.received.Load())
	s.publishedRate.step(now, s.published.Load())
	if s.nothingLeft() {
		raise(&s.caughtUp, now.UnixMicro())
	}
	state, cond := s.state()
	last := s.lastState.Swap(&state)
	if last == nil || *last != state {
		var from event.State
		if last != nil {
			from = *last
		}
		s.ops.facts.State(s.name, from, state, cond)
	}
}

func raise(a *atomic.Int64, v int64) {
	for {
		old := a.Load()
		if v <= old || a.CompareAndSwap(old, v) {
			return
		}
	}
}
