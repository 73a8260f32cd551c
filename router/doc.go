// Package router makes Kafka records of events: it chooses topic, key,
// partition hash, timestamp, headers and body. It is pure: no clock, no log, no
// goroutine, no I/O. The same event gives the same record today and after a
// crash, which is what makes a redelivery recognisable.
//
//	event ─► route table ─► topic       exact name, prefix.* (longest first), *
//	      ├► key ─► murmur2             the key's bytes, else the event id or none
//	      ├► headers                    the preset's, configured columns, the message's own
//	      ├► timestamp                  commit time, or occurred_at if the route says so
//	      └► body                       the payload's bytes, or a JSON object around them
//
// # Headers
//
// For forze, in this order; a value that is NULL or empty is an absent header:
//
//	forze_event_id forze_occurred_at forze_correlation_id forze_causation_id
//	forze_execution_id forze_tenant_id forze_hlc traceparent
//	<configured columns> <the message's own> <ce_…> walrelay_position
//	walrelay_transactional forze_type
//
// For debezium and basic:
//
//	id traceparent <configured columns> <the message's own> <ce_…> walrelay_position
//	walrelay_transactional type
//
// walrelay_transactional is there, with the value false, for logical messages
// emitted outside of any transaction.
//
// Names that the preset, the route's envelope or walrelay itself use are
// reserved: a message's own header of such a name is dropped, a configured one
// is refused by [Options.Validate]. A traceparent that a message brings along
// passes where the event has none of its own.
//
// # Bytes
//
// Key, value and most headers alias the event's memory. What has to be written
// anew (times, stamps, the JSON envelope) is appended to scratch memory that the
// caller hands in and keeps as long as the event's.
//
// The formats are those of the forze outbox and of CloudEvents 1.0 in the Kafka
// binding's binary mode.
package router
