package ops

import "github.com/prometheus/client_golang/prometheus"

// Kind is how a metric behaves.
type Kind string

// The kinds.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// Metric is one family of series. All families of walrelay are declared in this file.
type Metric struct {
	Name   string
	Kind   Kind
	Labels []string
	Help   string
	desc   *prometheus.Desc
}

// Metrics lists every family that ops exports, in the order of docs/metrics.md.
func Metrics() []*Metric { return families }

var families []*Metric

func family(name string, kind Kind, help string, labels ...string) *Metric {
	m := &Metric{
		Name: "walrelay_" + name, Kind: kind, Help: help, Labels: labels,
		desc: prometheus.NewDesc("walrelay_"+name, help, labels, nil),
	}
	families = append(families, m)
	return m
}

// Bounds of the label sets that come from data; beyond them everything is restLabel.
const (
	maxTopics    = 200
	maxReasons   = 16
	maxLabelSize = 249 // Kafka's own limit for topic names
	restLabel    = "other"
)

// latencyBuckets are upper bounds in seconds, 0.5 ms to 60 s.
var latencyBuckets = []float64{
	.0005, .001, .0015, .002, .003, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60,
}

// statementBuckets are for statements on the outbox table: some of the above, since
// a source has many series already.
var statementBuckets = []float64{.001, .01, .1, 1, 10}

// The process.
var (
	metricBuild       = family("build_info", Gauge, "Always 1; the labels say which build runs.", "version", "go")
	metricReady       = family("ready", Gauge, "1 when /readyz answers 200, else 0.")
	metricLoopAge     = family("loop_age_seconds", Gauge, "Time since the loop made its last step; beyond the loop's limit /healthz fails.", "loop")
	metricLoopLimit   = family("loop_max_age_seconds", Gauge, "How long the loop may go without a step.", "loop")
	metricWarnings    = family("config_warnings", Gauge, "Warnings about the configuration that stand since the start.")
	metricCertificate = family("certificate_expiry_timestamp_seconds", Gauge, "End of validity of a client certificate in use, seconds since 1970 UTC.", "certificate")
	metricLogDropped  = family("log_lines_dropped_total", Counter, "Log lines that were not written because equal lines had been written just before.")
)

// One source.
var (
	metricState         = family("source_state", Gauge, "1 for the state that the source is in, 0 for the others.", "source", "state")
	metricReconnects    = family("source_reconnects_total", Counter, "Connections to the source that were made again after a loss.", "source")
	metricPosition      = family("position_bytes", Gauge, "Log position (LSN) as a number of bytes, per rung of the ladder: server, sent, received, published, confirmed, restart.", "source", "rung")
	metricLagBytes      = family("lag_bytes", Gauge, "Bytes of log between the server's head and the rung: sent, received, published, confirmed.", "source", "rung")
	metricLagSeconds    = family("lag_seconds", Gauge, "Upper bound for the age of the oldest commit that is not yet acknowledged by Kafka; 0 when all that the server has is published. While the table is read instead of the log it is outbox_lag_seconds. Compares the server's clock with ours. Absent on a standby and before the first contact.", "source")
	metricFlightBytes   = family("in_flight_bytes", Gauge, "Memory held for events that were read and are not yet acknowledged, the read buffer included.", "source")
	metricFlightEvents  = family("in_flight_events", Gauge, "Events that were read and are not yet acknowledged.", "source")
	metricReceived      = family("events_received_total", Counter, "Events taken from the source.", "source")
	metricReceivedBytes = family("events_received_bytes_total", Counter, "Payload bytes taken from the source.", "source")
	metricPublished     = family("events_published_total", Counter, "Events that Kafka acknowledged (dead letters among them).", "source")
	metricIgnored       = family("events_ignored_total", Counter, "Rows and messages that are not for us, by reason.", "source", "reason")
	metricDeferred      = family("events_deferred_total", Counter, "Events left in the table for later: due in the future, or behind a parked event of their key.", "source")
	metricRefused       = family("events_refused_total", Counter, "Events that cannot be published as they are, by reason.", "source", "reason")
	metricCommitToAck   = family("commit_to_ack_seconds", Histogram, "Time from the commit in the source to Kafka's acknowledgement. Compares the server's clock with ours.", "source")
)

// The replication slot, as the server reports it.
var (
	metricSlotActive   = family("slot_active", Gauge, "1 when a connection uses the slot.", "source")
	metricSlotRetained = family("slot_retained_bytes", Gauge, "WAL that the server keeps because of the slot.", "source")
	metricSlotSafe     = family("slot_safe_bytes", Gauge, "WAL that can still be written before the slot is in danger (safe_wal_size); absent when the server sets no limit.", "source")
	metricSlotStatus   = family("slot_wal_status", Gauge, "1 for the slot's wal_status, 0 for the others.", "source", "state")
	metricSlotInvalid  = family("slot_invalidated", Gauge, "1 for the reason why the slot was invalidated, 0 for the others.", "source", "reason")
	metricSpillTxns    = family("slot_spilled_transactions_total", Counter, "Transactions that the server's decoder wrote to disk (pg_stat_replication_slots).", "source")
	metricSpillBytes   = family("slot_spilled_bytes_total", Counter, "Bytes that the server's decoder wrote to disk (pg_stat_replication_slots).", "source")
	metricSlotAge      = family("slot_report_age_seconds", Gauge, "Age of the slot figures above.", "source")
)

// The change stream's place in the oplog, as the server reports it: absent for other sources, and for what the user may not ask.
var (
	metricPositionTime  = family("position_timestamp_seconds", Gauge, "Cluster time of a change stream's position, seconds since 1970 UTC, per rung of the ladder: server, received, published, confirmed.", "source", "rung")
	metricStreamLag     = family("stream_lag_seconds", Gauge, "How far the newest position that was read from the change stream is behind the majority point of the server's log; in whole seconds, by the server's times alone.", "source")
	metricCheckpointLag = family("checkpoint_lag_seconds", Gauge, "How far the remembered position is behind the majority point of the server's log.", "source")
	metricMajorityLag   = family("majority_lag_seconds", Gauge, "How far what a majority of the replica set has is behind the newest write: change streams bring nothing beyond it.", "source")
	metricOplogWindow   = family("oplog_window_seconds", Gauge, "Time between the oldest entry of the primary's oplog and the newest.", "source")
	metricHeadroom      = family("position_headroom_seconds", Gauge, "How far the remembered position is ahead of the oldest entry of the oplog; it is lost at 0.", "source")
	metricHeadroomETA   = family("position_headroom_eta_seconds", Gauge, "When the headroom will be used up if all goes on as in the last minute; absent while it does not shrink.", "source")
	metricClockOffset   = family("source_clock_offset_seconds", Gauge, "How far the server's clock is ahead of ours, half a round trip unsure.", "source")
	metricStreamAge     = family("stream_report_age_seconds", Gauge, "Age of the stream figures above.", "source")
)

// The outbox tables of one source: absent for what it does not do.
var (
	metricGear        = family("source_gear", Gauge, "1 for the way in which the source is read now (log, poll, catch_up, deciding), 0 for the others.", "source", "state")
	metricOutboxLag   = family("outbox_lag_seconds", Gauge, "Age of the oldest row of the outbox that is not published, by the database's clock; 0 when there is none.", "source")
	metricOutboxRows  = family("outbox_rows", Gauge, "Rows of the outbox that are not published, by state: pending, retrying (those of them that wait for another attempt), processing, failed. Counting stops at 100 000 per table.", "source", "state")
	metricDeadTuples  = family("outbox_dead_tuples", Gauge, "The server's estimate of dead rows in the outbox: what vacuum has to clean up.", "source")
	metricClaimTime   = family("claim_seconds", Histogram, "Time of one claim of rows, empty ones too.", "source")
	metricClaimed     = family("rows_claimed_total", Counter, "Rows that were claimed.", "source")
	metricLostClaims  = family("claims_lost_total", Counter, "Outcomes that hit nothing because somebody else had the row by then: what was published is published twice.", "source")
	metricRowRetries  = family("row_retries_total", Counter, "Failed attempts after which a row waits for another one.", "source")
	metricGivenUp     = family("rows_given_up_total", Counter, "Rows that failed for the last time: parked, or left failed.", "source")
	metricReclaimed   = family("rows_reclaimed_total", Counter, "Abandoned claims that were given back: rows whose holder died.", "source")
	metricMarks       = family("marks_total", Counter, "Marks of published rows, by what they hit: pending (as it should be), foreign (another poller has the row), settled (it was published or failed already), absent (no such row).", "source", "result")
	metricMarkTime    = family("mark_seconds", Histogram, "Time of one batch of marks.", "source")
	metricSkipped     = family("events_skipped_total", Counter, "Events read from the log after a restart that the database showed to be delivered or parked already.", "source")
	metricHeldKeys    = family("held_keys", Gauge, "Keys whose later events wait for an earlier one.", "source")
	metricParked      = family("parked_events", Gauge, "Events put aside, by state: parked (wait for a human), behind (wait for one of those), retrying (told to go again).", "source", "state")
	metricShards      = family("shards_held", Gauge, "Parts of the key space that this process holds.", "source")
	metricMembers     = family("members", Gauge, "Relays that share the source's table, this one among them.", "source")
	metricLostShards  = family("shards_lost_total", Counter, "Shards that were lost to another relay or could not be renewed in time.", "source")
	metricRetained    = family("retained_rows_total", Counter, "Published rows that retention deleted.", "source")
	metricPartDropped = family("retained_partitions_total", Counter, "Partitions of published rows that retention dropped.", "source")
	metricSourceWarn  = family("source_warnings", Gauge, "Warnings that stand for the source: events flow, but somebody should look.", "source")
)

// The order of stamps: absent where no route asks for order: hlc, but for the inversions.
var (
	metricOrderBytes     = family("order_buffer_bytes", Gauge, "Memory of the source's events that wait for their place in the order of stamps.", "source")
	metricOrderEvents    = family("order_buffer_events", Gauge, "Events of the source that wait for their place in the order of stamps.", "source")
	metricOrderOldest    = family("order_oldest_age_seconds", Gauge, "How far the smallest stamp that waits is behind the clock of the source's server; 0 when nothing waits. While that clock is not known it is compared with ours.", "source")
	metricOrderLag       = family("order_watermark_lag_seconds", Gauge, "How far the source's watermark is behind the clock of its server: what a new event has to wait at least. Absent until the clock was read.", "source")
	metricOrderDetached  = family("order_detached", Gauge, "1 while the others do not wait for the source: it has stalled, or is read from its table.", "source")
	metricOrderStalls    = family("order_stalls_total", Counter, "How often the source said nothing for order.stall_after, so that the others went on without it.", "source")
	metricOrderLate      = family("order_late_events_total", Counter, "Events whose stamp was below one that had been released: published out of order.", "source")
	metricOrderEarly     = family("order_early_events_total", Counter, "Events that were released before their time because memory was full; what comes below them later is late.", "source")
	metricOrderFuture    = family("order_future_events_total", Counter, "Events whose stamp was further ahead of their commit than order.max_drift: they took the place of their commit.", "source")
	metricOrderUnstamped = family("order_unstamped_events_total", Counter, "Events without a stamp: they took the place of their commit.", "source")
	metricOrderRaised    = family("order_raised_events_total", Counter, "Events with within_key: commit that stand behind an earlier one of their key with a greater stamp.", "source")
	metricOrderConflicts = family("order_conflicts_total", Counter, "Raised events that went out behind one of their key from another source whose stamp is greater: no order satisfies both.", "source")
	metricInversions     = family("stamp_inversions_total", Counter, "Events of routes in commit order whose stamp is below that of an earlier event of their key; at least so many, since only the newest keys are remembered. Absent until an event with a stamp came.", "source")
)

// The broker.
var (
	metricRecords      = family("topic_records_total", Counter, "Records that Kafka acknowledged.", "topic")
	metricRecordBytes  = family("topic_record_bytes_total", Counter, "Bytes of keys and values that Kafka acknowledged, before compression.", "topic")
	metricDeadLetters  = family("topic_dead_letters_total", Counter, "Records for the topic that went to the dead-letter topic instead.", "topic")
	metricRetries      = family("topic_retries_total", Counter, "Records that had to be produced again.", "topic")
	metricProduceToAck = family("produce_to_ack_seconds", Histogram, "Time of one produce request, from writing it to the broker's answer.")
	metricConditions   = family("broker_conditions", Gauge, "Reasons on the broker's side why the relay is not ready.")
	metricPartitions   = family("topic_partition_changes_total", Counter, "Changes of a topic's number of partitions: keys may have moved.")
)
