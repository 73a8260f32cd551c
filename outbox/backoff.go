package outbox

import (
	"math/rand/v2"
	"time"
)

// Backoff is the wait before attempt n+1 of a row that has failed n times (n ≥ 1):
// equal jitter, uniform in [raw/2, raw] with raw = min(longest, shortest·2^(n-1)).
func Backoff(n int, shortest, longest time.Duration) time.Duration {
	raw := longest
	if shift := n - 1; shift < 62 && shortest <= longest>>max(shift, 0) {
		raw = shortest << max(shift, 0)
	}
	return raw/2 + rand.N(raw-raw/2+1)
}

// backoff paces the repetition of a call that failed for a passing reason.
type backoff struct {
	min, max time.Duration
	n        int // failures in a row
}

func (b *backoff) next() time.Duration {
	b.n++
	return Backoff(b.n, b.min, b.max)
}
