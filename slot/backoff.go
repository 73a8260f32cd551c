package slot

import (
	"math/rand/v2"
	"time"
)

// backoff grows from min to max and is jittered by half, so that many relays do
// not knock on a recovering server in step.
type backoff struct {
	min, max time.Duration
	next     time.Duration
}

func (b *backoff) wait() time.Duration {
	b.next = min(max(b.next*2, b.min), b.max)
	return b.next/2 + rand.N(b.next/2+1)
}

func (b *backoff) reset() { b.next = 0 }
