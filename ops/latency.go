package ops

import (
	"sync/atomic"
	"time"
)

// latency is a histogram with fixed buckets that takes n equal observations at
// once; the client library's own takes them one by one, and a batch of results
// shares its time.
type latency struct {
	counts [18 + 1]atomic.Uint64 // as latencyBuckets, and one beyond
	nanos  atomic.Int64
}

// observe records n observations of d. Negative d (clocks that differ) counts as zero.
func (l *latency) observe(d time.Duration, n int) {
	if n <= 0 {
		return
	}
	d = max(d, 0)
	s := d.Seconds()
	i := 0
	for i < len(latencyBuckets) && s > latencyBuckets[i] {
		i++
	}
	l.counts[i].Add(uint64(n))
	l.nanos.Add(int64(d) * int64(n))
}

// read gives cumulative counts per upper bound, as Prometheus wants them.
func (l *latency) read() (count uint64, sum float64, buckets map[float64]uint64) {
	buckets = make(map[float64]uint64, len(latencyBuckets))
	sum = float64(l.nanos.Load()) / 1e9
	for i := range l.counts {
		count += l.counts[i].Load()
		if i < len(latencyBuckets) {
			buckets[latencyBuckets[i]] = count
		}
	}
	return count, sum, buckets
}
