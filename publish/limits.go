package publish

import (
	"math"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kgo"
)

// limits are what a topic takes, from its configuration.
type limits struct {
	maxBytes int64 // max.message.bytes; 0: not known, the broker decides
	// The window of record timestamps, milliseconds around the broker's clock.
	// beforeMax is MaxInt64 where there is no bound.
	createTime          bool
	beforeMax, afterMax int64
	minISR              int
	asOf                int64 // when they were read, milliseconds since 1970
}

// unlimited is what holds for a topic whose configuration may not be read.
func unlimited(now time.Time) *limits {
	return &limits{beforeMax: math.MaxInt64, afterMax: math.MaxInt64, asOf: now.UnixMilli()}
}

// newLimits reads a topic's configuration as the broker describes it. Before
// Kafka 3.6 one setting bounded both sides of the window.
func newLimits(config map[string]string, now time.Time) *limits {
	l := unlimited(now)
	number := func(key string, into *int64) {
		if v, err := strconv.ParseInt(config[key], 10, 64); err == nil && v >= 0 {
			*into = v
		}
	}
	number("max.message.bytes", &l.maxBytes)
	number("message.timestamp.difference.max.ms", &l.beforeMax)
	l.afterMax = l.beforeMax
	number("message.timestamp.before.max.ms", &l.beforeMax)
	number("message.timestamp.after.max.ms", &l.afterMax)
	l.createTime = config["message.timestamp.type"] == "CreateTime"
	isr := int64(0)
	number("min.insync.replicas", &isr)
	l.minISR = int(isr)
	return l
}

// takes reports whether the topic takes a record with this timestamp now. It
// reads the clock only where the answer depends on the time since the limits were read.
func (l *limits) takes(millis int64) bool {
	if !l.createTime {
		return true
	}
	young := l.afterMax == math.MaxInt64 || millis <= l.asOf+l.afterMax
	old := l.beforeMax == math.MaxInt64
	if young && old {
		return true
	}
	now := time.Now().UnixMilli()
	return (young || millis-now <= l.afterMax) && (old || now-millis <= l.beforeMax)
}

// fit decides how a record goes out: refused, alone, or in a batch; and with
// which timestamp.
func (t *topic) fit(it *item) {
	lim, size := t.limits.Load(), batchSize(&it.rec)
	switch {
	case lim.maxBytes > 0 && size > lim.maxBytes:
		it.refused = tooLarge(t.name, it, size, lim.maxBytes)
		return
	case size > maxWideBytes:
		it.refused = tooLarge(t.name, it, size, maxWideBytes)
		return
	}
	it.wide = size+batchPrefix > t.batchCap.Load()
	if !lim.takes(it.rec.Timestamp.UnixMilli()) {
		it.rec.Timestamp = time.UnixMilli(it.fallback)
		if !lim.takes(it.fallback) {
			it.rec.Timestamp = time.Now()
		}
	}
}

// Layout of a batch (Kafka record format v2): 61 bytes of header, then records.
// franz-go counts the 4 bytes of its length prefix as well.
const (
	batchHeader       = 61
	batchPrefix       = 4
	maxWideBytes      = 64 << 20
	maxWideWriteBytes = maxWideBytes + 1<<20
)

// batchSize is the size of a batch that holds only r, uncompressed, as the broker
// compares it with max.message.bytes.
func batchSize(r *kgo.Record) int64 {
	n := 1 + 1 + 1 + // attributes, timestamp delta 0, offset delta 0
		kbin.VarintLen(int32(len(r.Key))) + len(r.Key) +
		kbin.VarintLen(int32(len(r.Value))) + len(r.Value) +
		kbin.VarintLen(int32(len(r.Headers)))
	for i := range r.Headers {
		h := &r.Headers[i]
		n += kbin.VarintLen(int32(len(h.Key))) + len(h.Key) + kbin.VarintLen(int32(len(h.Value))) + len(h.Value)
	}
	return int64(batchHeader + kbin.VarintLen(int32(n)) + n)
}
