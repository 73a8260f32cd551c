package ops

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/walrelay/walrelay/event"
)

// topicCounts are the counters of one topic.
type topicCounts struct {
	records, bytes, deadLetters, retries, refused atomic.Int64
}

// Broker is what is known of the broker's side.
type Broker struct {
	ops              *Ops
	produceToAck     latency
	partitionChanges atomic.Int64

	mu struct {
		sync.Mutex
		conditions map[string]event.Condition
	}
}

// Published counts a batch of records of one topic that Kafka acknowledged, and
// its bytes before compression.
func (b *Broker) Published(topic string, records, bytes int) {
	t := b.ops.topics.of(topic)
	t.records.Add(int64(records))
	t.bytes.Add(int64(bytes))
}

// Latency is the time of one produce request, from writing it to its answer.
func (b *Broker) Latency(d time.Duration) { b.produceToAck.observe(d, 1) }

// DeadLettered counts a record for topic that went to the dead-letter topic instead.
func (b *Broker) DeadLettered(topic string) { b.ops.topics.of(topic).deadLetters.Add(1) }

// Retried counts records that had to be produced again.
func (b *Broker) Retried(topic string, records int) {
	b.ops.topics.of(topic).retries.Add(int64(records))
}

// PartitionsChanged says that the topic has another number of partitions now.
func (b *Broker) PartitionsChanged(topic string, before, now int) {
	b.partitionChanges.Add(1)
	b.ops.facts.PartitionsChanged(topic, before, now)
}

// Condition sets the reason that stands under key (a topic and partition, a
// broker, "authentication": the publisher's choice, used again to clear it), or
// clears it when c.What is empty. While any reason stands the relay is not
// ready. The log gets a line when a reason comes or goes, none when only its
// wording changes.
func (b *Broker) Condition(key string, c event.Condition) {
	b.mu.Lock()
	_, stood := b.mu.conditions[key]
	if c.What == "" {
		delete(b.mu.conditions, key)
	} else {
		b.mu.conditions[key] = c
	}
	b.mu.Unlock()
	if stood != (c.What != "") {
		b.ops.facts.Condition(key, c)
	}
}

// conditions lists at most limit reasons by key, and says how many stand.
func (b *Broker) conditions(limit int) (list []BrokerReason, total int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	list = []BrokerReason{}
	if limit == 0 {
		return list, len(b.mu.conditions)
	}
	for _, key := range slices.Sorted(maps.Keys(b.mu.conditions)) {
		if len(list) == limit {
			break
		}
		list = append(list, BrokerReason{Key: b.ops.redact(clean(key)), Condition: b.ops.redactCondition(b.mu.conditions[key])})
	}
	return list, len(b.mu.conditions)
}
