package ops

import (
	"time"

	"github.com/walrelay/walrelay/event"
)

// Status is the answer of /api/status. Members are only ever added. Sizes are in
// bytes, times RFC 3339, durations in seconds, LSNs in Postgres' text form.
type Status struct {
	Name          string         `json:"name"`
	Version       string         `json:"version"`
	Now           time.Time      `json:"now"`
	StartedAt     time.Time      `json:"started_at"`
	UptimeSeconds float64        `json:"uptime_seconds"`
	Live          bool           `json:"live"`
	Ready         bool           `json:"ready"`
	Sources       []SourceStatus `json:"sources"`
	Broker        BrokerStatus   `json:"broker"`
	Loops         []Loop         `json:"loops"`
	// Process holds reasons for not being ready that belong to no source.
	Process  []event.Condition `json:"process"`
	Warnings []event.Condition `json:"warnings"`
	// Log holds the newest lines of level warn and above, newest first.
	Log             []LogLine `json:"log"`
	LogLinesDropped int64     `json:"log_lines_dropped"`
}

// SourceStatus is one source.
type SourceStatus struct {
	SourceReadiness
	// Ladder goes from the server's head down; empty for sources without LSNs.
	Ladder []Rung `json:"ladder"`
	// LagSeconds is an upper bound for the age of the oldest commit that is not yet
	// published; absent when unknown.
	LagSeconds     *float64   `json:"lag_seconds,omitempty"`
	InFlightBytes  int64      `json:"in_flight_bytes"`
	InFlightEvents int64      `json:"in_flight_events"`
	Events         EventCount `json:"events"`
	// Per second, over the last ten seconds.
	ReceivedPerSecond  float64     `json:"received_per_second"`
	PublishedPerSecond float64     `json:"published_per_second"`
	Reconnects         int64       `json:"reconnects"`
	Slot               *SlotStatus `json:"slot,omitempty"`
	// Stream is about a change stream's place in the oplog.
	Stream *StreamStatus `json:"stream,omitempty"`
	// Table is about the source's outbox tables.
	Table *TableStatus `json:"table,omitempty"`
	// Order is about the order of stamps; absent where no route asks for it.
	Order *OrderStatus `json:"order,omitempty"`
}

// Rung is one step of the ladder.
type Rung struct {
	// Name is server, sent, received, published, confirmed or restart.
	Name string `json:"name"`
	// LSN is empty while unknown. For a change stream it is a cluster time: RFC 3339, a point, and the increment.
	LSN         string `json:"lsn"`
	BehindBytes int64  `json:"behind_bytes"` // behind the server's head
	// BehindSeconds stands in place of BehindBytes for a change stream.
	BehindSeconds *float64 `json:"behind_seconds,omitempty"`
}

// EventCount counts events since the start of the process.
type EventCount struct {
	Received  int64            `json:"received"`
	Bytes     int64            `json:"received_bytes"`
	Published int64            `json:"published"`
	Deferred  int64            `json:"deferred"`
	Ignored   map[string]int64 `json:"ignored"` // by reason
	Refused   map[string]int64 `json:"refused"` // by reason
	// Inversions are events in commit order whose stamp is below an earlier one of their key.
	Inversions int64 `json:"stamp_inversions"`
}

// SlotStatus is what the server said of the slot, and how long ago.
type SlotStatus struct {
	event.SlotReport
	AgeSeconds float64 `json:"age_seconds"`
}

// BrokerStatus is the broker's side.
type BrokerStatus struct {
	// Reasons lists the first 50; ReasonCount counts all.
	Reasons          []BrokerReason `json:"reasons"`
	ReasonCount      int            `json:"reason_count"`
	PartitionChanges int64          `json:"partition_changes"`
	Topics           []TopicStatus  `json:"topics"` // at most 200, then "other"
}

// TopicStatus counts records of one topic since the start of the process.
type TopicStatus struct {
	Topic       string `json:"topic"`
	Records     int64  `json:"records"`
	Bytes       int64  `json:"bytes"`
	Refused     int64  `json:"refused"`
	Retries     int64  `json:"retries"`
	DeadLetters int64  `json:"dead_letters"`
}

// Status reads everything now.
func (o *Ops) Status() Status {
	now := o.clock()
	health, ready := o.Health(), o.Readiness()
	st := Status{
		Name: o.name, Version: o.version, Now: now.UTC(), StartedAt: o.started.UTC(),
		UptimeSeconds: now.Sub(o.started).Seconds(),
		Live:          health.Live, Ready: ready.Ready, Loops: health.Loops,
		Sources: []SourceStatus{}, Process: ready.Process, Warnings: ready.Warnings, Log: []LogLine{},
		Broker: BrokerStatus{
			Reasons: ready.Broker, ReasonCount: ready.BrokerReasons,
			PartitionChanges: o.broker.partitionChanges.Load(), Topics: []TopicStatus{},
		},
	}
	for _, s := range o.sources() {
		st.Sources = append(st.Sources, s.status(now))
	}
	for topic, t := range o.topics.all {
		st.Broker.Topics = append(st.Broker.Topics, TopicStatus{
			Topic: topic, Records: t.records.Load(), Bytes: t.bytes.Load(), Refused: t.refused.Load(),
			Retries: t.retries.Load(), DeadLetters: t.deadLetters.Load(),
		})
	}
	if o.log != nil {
		st.Log, st.LogLinesDropped = o.log.Recent.Lines(), o.log.Dropped()
	}
	return st
}

func (s *Source) status(now time.Time) SourceStatus {
	st := SourceStatus{
		SourceReadiness: s.readiness(),
		Ladder:          []Rung{},
		Events: EventCount{
			Received: s.received.Load(), Bytes: s.receivedBytes.Load(), Published: s.published.Load(),
			Deferred: s.deferred.Load(), Ignored: map[string]int64{}, Refused: map[string]int64{},
		},
		ReceivedPerSecond: s.receivedRate.perSecond(), PublishedPerSecond: s.publishedRate.perSecond(),
		Reconnects: s.reconnects.Load(),
		Table:      s.tableStatus(),
		Stream:     s.streamStatus(),
		Order:      s.orderStatus(),
	}
	st.Events.Inversions, _ = s.inversions()
	for reason, n := range s.ignored.all {
		st.Events.Ignored[reason] = n.Load()
	}
	for reason, n := range s.refused.all {
		st.Events.Refused[reason] = n.Load()
	}
	st.InFlightBytes, st.InFlightEvents = s.inFlight()
	if lag, known := s.lagSeconds(now); known {
		st.LagSeconds = new(lag)
	}
	rungs := s.ladder()
	for _, r := range rungs {
		out := Rung{Name: r.name}
		switch {
		case !r.known:
		case s.clusterTimes():
			out.LSN, out.BehindSeconds = clusterText(r.lsn), new(float64(max(clusterSeconds(rungs[0].lsn)-clusterSeconds(r.lsn), 0)))
		default:
			out.LSN, out.BehindBytes = r.lsn.String(), int64(rungs[0].lsn.Sub(r.lsn))
		}
		st.Ladder = append(st.Ladder, out)
	}
	if r := s.slot.Load(); r != nil {
		st.Slot = &SlotStatus{SlotReport: *r, AgeSeconds: s.slotAge().Seconds()}
	}
	return st
}
