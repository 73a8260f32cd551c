package ops

import (
	"maps"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/walrelay/walrelay/event"
)

// Describe is for the registry.
func (o *Ops) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range families {
		ch <- m.desc
	}
}

// Collect is for the registry: it reads everything at the moment of the scrape.
func (o *Ops) Collect(ch chan<- prometheus.Metric) {
	e := emitter{ch}
	now := o.clock()
	e.put(metricBuild, 1, o.version, runtime.Version())
	e.put(metricReady, truth(o.Readiness().Ready))
	for _, l := range o.loops() {
		if !l.ended.Load() {
			e.put(metricLoopAge, l.age(now).Seconds(), l.name)
			e.put(metricLoopLimit, l.maxAge.Seconds(), l.name)
		}
	}
	o.mu.Lock()
	warnings, certificates := len(o.mu.warnings), maps.Clone(o.mu.certificates)
	o.mu.Unlock()
	e.put(metricWarnings, float64(warnings))
	for _, name := range slices.Sorted(maps.Keys(certificates)) {
		e.put(metricCertificate, float64(certificates[name].Unix()), name)
	}
	if o.log != nil {
		e.put(metricLogDropped, float64(o.log.Dropped()))
	}
	for _, s := range o.sources() {
		s.collect(e)
	}
	o.broker.collect(e)
}

var states = []event.State{
	event.StateStarting, event.StateConnecting, event.StateStandby, event.StateStreaming,
	event.StateDraining, event.StateStopped, event.StateHalted, event.StateDisconnected,
}

func (s *Source) collect(e emitter) {
	state, _ := s.state()
	for _, st := range states {
		e.put(metricState, truth(st == state), s.name, string(st))
	}
	e.count(metricReconnects, &s.reconnects, s.name)
	e.count(metricReceived, &s.received, s.name)
	e.count(metricReceivedBytes, &s.receivedBytes, s.name)
	e.count(metricPublished, &s.published, s.name)
	e.count(metricDeferred, &s.deferred, s.name)
	for reason, n := range s.ignored.all {
		e.count(metricIgnored, n, s.name, reason)
	}
	for reason, n := range s.refused.all {
		e.count(metricRefused, n, s.name, reason)
	}
	bytes, events := s.inFlight()
	e.put(metricFlightBytes, float64(bytes), s.name)
	e.put(metricFlightEvents, float64(events), s.name)
	if lag, known := s.lagSeconds(s.ops.clock()); known {
		e.put(metricLagSeconds, lag, s.name)
	}
	e.latency(metricCommitToAck, &s.commitToAck, s.name)

	rungs := s.ladder()
	for _, r := range rungs {
		if !r.known {
			continue
		}
		if s.clusterTimes() {
			e.put(metricPositionTime, float64(clusterSeconds(r.lsn)), s.name, r.name)
			continue
		}
		e.put(metricPosition, float64(r.lsn), s.name, r.name)
		if r.name != "server" && r.name != "restart" {
			e.put(metricLagBytes, float64(rungs[0].lsn.Sub(r.lsn)), s.name, r.name)
		}
	}
	s.collectSlot(e)
	s.collectStream(e)
	s.collectTable(e)
	s.collectOrder(e)
}

// The words of pg_replication_slots: wal_status, and invalidation_reason of Postgres 18.
var (
	walStatuses   = []string{"reserved", "extended", "unreserved", "lost"}
	invalidations = []string{"wal_removed", "rows_removed", "wal_level_insufficient", "idle_timeout"}
)

func (s *Source) collectSlot(e emitter) {
	r := s.slot.Load()
	if r == nil {
		return
	}
	e.put(metricSlotActive, truth(r.Active), s.name)
	e.put(metricSlotRetained, float64(r.RetainedBytes), s.name)
	if r.SafeBytes >= 0 {
		e.put(metricSlotSafe, float64(r.SafeBytes), s.name)
	}
	e.oneHot(metricSlotStatus, walStatuses, r.WALStatus, s.name)
	e.oneHot(metricSlotInvalid, invalidations, r.Invalidation, s.name)
	e.put(metricSpillTxns, float64(r.SpillTxns), s.name)
	e.put(metricSpillBytes, float64(r.SpillBytes), s.name)
	e.put(metricSlotAge, s.slotAge().Seconds(), s.name)
}

func (b *Broker) collect(e emitter) {
	for topic, t := range b.ops.topics.all {
		e.count(metricRecords, &t.records, topic)
		e.count(metricRecordBytes, &t.bytes, topic)
		e.count(metricDeadLetters, &t.deadLetters, topic)
		e.count(metricRetries, &t.retries, topic)
	}
	_, total := b.conditions(0)
	e.put(metricConditions, float64(total))
	e.count(metricPartitions, &b.partitionChanges)
	e.latency(metricProduceToAck, &b.produceToAck)
}

// emitter sends readings to the registry.
type emitter struct{ ch chan<- prometheus.Metric }

func (e emitter) put(m *Metric, v float64, labels ...string) {
	kind := prometheus.GaugeValue
	if m.Kind == Counter {
		kind = prometheus.CounterValue
	}
	for i := range labels {
		labels[i] = clean(labels[i])
	}
	e.ch <- prometheus.MustNewConstMetric(m.desc, kind, v, labels...)
}

func (e emitter) count(m *Metric, n *atomic.Int64, labels ...string) {
	e.put(m, float64(n.Load()), labels...)
}

func (e emitter) latency(m *Metric, l *latency, labels ...string) {
	count, sum, buckets := l.read()
	for i := range labels {
		labels[i] = clean(labels[i])
	}
	e.ch <- prometheus.MustNewConstHistogram(m.desc, count, sum, buckets, labels...)
}

// coarse is latency with statementBuckets alone.
func (e emitter) coarse(m *Metric, l *latency, labels ...string) {
	count, sum, all := l.read()
	buckets := make(map[float64]uint64, len(statementBuckets))
	for _, bound := range statementBuckets {
		buckets[bound] = all[bound]
	}
	for i := range labels {
		labels[i] = clean(labels[i])
	}
	e.ch <- prometheus.MustNewConstHistogram(m.desc, count, sum, buckets, labels...)
}

// oneHot puts 1 for the word that holds and 0 for the others. A word that a
// newer server invented appears as restLabel.
func (e emitter) oneHot(m *Metric, words []string, holds, source string) {
	for _, w := range words {
		e.put(m, truth(w == holds), source, w)
	}
	if holds != "" && !slices.Contains(words, holds) {
		e.put(m, 1, source, restLabel)
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
