package ops

import (
	"sync"
	"time"
)

// rate tells events per second over the last ten steps of the watch, from a
// counter that only grows.
type rate struct {
	mu    sync.Mutex
	at    [11]time.Time
	total [11]int64
	steps int
}

func (r *rate) step(now time.Time, total int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := r.steps % len(r.at)
	r.at[i], r.total[i] = now, total
	r.steps++
}

// perSecond is zero until there are two steps.
func (r *rate) perSecond() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.steps < 2 {
		return 0
	}
	n := len(r.at)
	last := (r.steps - 1) % n
	first := 0
	if r.steps > n {
		first = r.steps % n
	}
	span := r.at[last].Sub(r.at[first]).Seconds()
	if span <= 0 {
		return 0
	}
	return float64(r.total[last]-r.total[first]) / span
}
