package publish

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/walrelay/walrelay/event"
)

// hooks are franz-go's calls into the package.
type hooks struct {
	p *Publisher

	answered atomic.Int64 // when a produce request was answered last, nanoseconds since 1970
	down     atomic.Bool  // the condition "kafka" is set
	mu       sync.Mutex   // keeps setting and clearing in order
}

var (
	_ kgo.HookProduceRecordPartitioned = (*hooks)(nil)
	_ kgo.HookProduceBatchWritten      = (*hooks)(nil)
	_ kgo.HookBrokerConnect            = (*hooks)(nil)
	_ kgo.HookBrokerE2E                = (*hooks)(nil)
)

// OnProduceRecordPartitioned numbers the records of a partition in the very order
// in which franz-go buffers them; it holds the partition's lock.
func (h *hooks) OnProduceRecordPartitioned(r *kgo.Record, _ int32) {
	if it, ok := r.Context.(*item); ok {
		it.place.Store(it.lane.Load().buffered.Add(1))
	}
}

// OnProduceBatchWritten: a batch was acknowledged.
func (h *hooks) OnProduceBatchWritten(_ kgo.BrokerMetadata, topic string, _ int32, m kgo.ProduceBatchMetrics) {
	h.p.obs.published(topic, m.NumRecords, m.UncompressedBytes)
}

// OnBrokerConnect: a connection was made, or not.
func (h *hooks) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if err != nil {
		h.failed(err)
	} else if h.down.Load() {
		h.recovered()
	}
}

// OnBrokerE2E: a request was answered, or not.
func (h *hooks) OnBrokerE2E(_ kgo.BrokerMetadata, key int16, e2e kgo.BrokerE2E) {
	if key != int16(kmsg.Produce) {
		return
	}
	if err := e2e.Err(); err != nil {
		h.failed(err)
		return
	}
	h.answered.Store(time.Now().UnixNano())
	h.p.obs.latency(e2e.DurationE2E())
	if h.down.Load() {
		h.recovered()
	}
}

func (h *hooks) failed(err error) {
	if h.p.ctx.Err() != nil || closedByUs(err) {
		return
	}
	// One broker of several is down: what that holds up is told per topic.
	if time.Since(time.Unix(0, h.answered.Load())) < unansweredFor {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.down.Store(true)
	h.p.obs.condition("kafka", h.p.explain("", err))
}

func (h *hooks) recovered() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.down.Swap(false) {
		h.p.obs.condition("kafka", event.Condition{})
	}
}
