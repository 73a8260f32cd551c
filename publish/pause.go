package publish

import (
	"math/rand/v2"
	"time"
)

const (
	backoffBase = 100 * time.Millisecond
	backoffCap  = 5 * time.Second
)

// backoff is how long to wait before attempt n+1: exponential, with equal jitter.
func backoff(n int) time.Duration {
	d := backoffCap
	if n < 6 {
		d = backoffBase << n
	}
	return d/2 + rand.N(d/2)
}

// pause waits; false when the publisher is closed meanwhile.
func (p *Publisher) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-p.ctx.Done():
		return false
	}
}
