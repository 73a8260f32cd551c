package publish

import (
	"time"

	"github.com/walrelay/walrelay/event"
)

// Observer is told what happens. Any function may be nil. They come from any
// goroutine, also from the one that reads acknowledgements, and must not block.
type Observer struct {
	// Published counts a batch that the broker acknowledged; bytes before compression.
	Published func(topic string, records, bytes int)
	// Latency is one produce request's time from writing to the answer.
	Latency func(d time.Duration)
	// Refused counts a record that can never be published as it is; reason is one of few words.
	Refused func(source, topic, reason string)
	// Parked counts a record that can never be published as it is and was put aside.
	Parked func(source, topic, reason string)
	// Held counts records that were put aside because an earlier one of their key waits.
	Held func(source string, records int)
	// DeadLettered counts a dead letter that the broker acknowledged.
	DeadLettered func(topic string)
	// Retried counts records that are sent again after a failure.
	Retried func(topic string, records int)
	// Condition sets a reason for not being ready, or clears it with an empty What. Keys
	// are "kafka", "kafka/tls", "kafka/producer", "topic/<name>", "stalled/<name>" and
	// "parking/<source>".
	Condition func(key string, c event.Condition)
	// PartitionsChanged reports that a topic's keys now spread over another number of partitions.
	PartitionsChanged func(topic string, before, after int)
	// TopicWarning reports, once per topic and finding, a setting that weakens a promise.
	TopicWarning func(topic, what string)
	// CertificateExpiry is the end of the client certificate in use, told whenever the files are read.
	CertificateExpiry func(notAfter time.Time)
}

func (o *Observer) published(topic string, records, bytes int) {
	if o.Published != nil {
		o.Published(topic, records, bytes)
	}
}

func (o *Observer) latency(d time.Duration) {
	if o.Latency != nil {
		o.Latency(d)
	}
}

func (o *Observer) refused(source, topic, reason string) {
	if o.Refused != nil {
		o.Refused(source, topic, reason)
	}
}

func (o *Observer) parked(source, topic, reason string) {
	if o.Parked != nil {
		o.Parked(source, topic, reason)
	}
}

func (o *Observer) held(source string, n int) {
	if o.Held != nil {
		o.Held(source, n)
	}
}

func (o *Observer) deadLettered(topic string) {
	if o.DeadLettered != nil {
		o.DeadLettered(topic)
	}
}

func (o *Observer) retried(topic string, n int) {
	if o.Retried != nil {
		o.Retried(topic, n)
	}
}

func (o *Observer) condition(key string, c event.Condition) {
	if o.Condition != nil {
		o.Condition(key, c)
	}
}

func (o *Observer) partitionsChanged(topic string, before, after int) {
	if o.PartitionsChanged != nil {
		o.PartitionsChanged(topic, before, after)
	}
}

func (o *Observer) topicWarning(topic, what string) {
	if o.TopicWarning != nil {
		o.TopicWarning(topic, what)
	}
}

func (o *Observer) certificateExpiry(t time.Time) {
	if o.CertificateExpiry != nil {
		o.CertificateExpiry(t)
	}
}
