// Package ops is what people and machines see of a running relay: metrics,
// liveness, readiness, the status page and the log.
//
// # Who calls what
//
// The assembly makes one [Log] and one [Ops]. Each source registers itself with
// [Ops.Source] and hands over probes, functions that read its atomics when
// somebody looks; the publisher reports through [Ops.Broker]. Counters are
// called once per batch and cost an atomic add. Each main loop owns a [Beat].
//
// # Faces
//
//	/metrics     Prometheus text; every name stands in metrics.go and docs/metrics.md
//	/healthz     200 while the main loops make steps, whatever Postgres and Kafka do
//	/readyz      200 when every source and the broker are well, else 503 with the reasons
//	/api/status  everything as JSON; the types are in status.go
//	/            the same for people
//
// Liveness and readiness answer two different questions. A relay whose broker
// is down is alive and not ready: a restart would not help it, and the restart's
// recovery would make things slower.
//
// # Bounds
//
// Labels are source, topic, state, reason and a few fixed words. Names that come
// from data (topics, reasons) get a label of their own up to a limit, the rest is
// counted as "other"; the number of series does not depend on the data. Repeated
// log lines are dropped, counted and summed up. Lists in answers are cut.
//
// # Secrets
//
// [Redactor] replaces registered secrets in everything that the log writes and
// in what the status page shows. It is the last line of defence, not the first:
// rooms do not put secrets into messages.
package ops
