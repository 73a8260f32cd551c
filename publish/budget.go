package publish

import (
	"context"
	"sync"
	"sync/atomic"
)

// budget bounds what was taken and is not decided yet, by records and by bytes.
// Taking and giving back cost a few atomic operations as long as there is room.
//
// A waiter is woken when three quarters or less are in use, not at each record
// given back: waking per record makes a full pipeline crawl in batches of one.
type budget struct {
	maxRecords, maxBytes int64

	records, bytes atomic.Int64
	waiters        atomic.Int32

	mu     sync.Mutex
	opened chan struct{} // closed and replaced to wake all waiters
}

func newBudget(records int, bytes int64) *budget {
	return &budget{maxRecords: int64(records), maxBytes: bytes, opened: make(chan struct{})}
}

// acquire takes room for one record of n bytes, or waits for it. A record larger
// than the whole bound passes when nothing else is under way.
func (b *budget) acquire(ctx context.Context, n int64) error {
	if b.try(n) {
		return nil
	}
	b.waiters.Add(1)
	defer b.waiters.Add(-1)
	for {
		opened := b.door()
		if b.try(n) {
			return nil
		}
		select {
		case <-opened:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (b *budget) try(n int64) bool {
	for {
		r := b.records.Load()
		if r >= b.maxRecords {
			return false
		}
		if b.records.CompareAndSwap(r, r+1) {
			break
		}
	}
	for {
		have := b.bytes.Load()
		if have > 0 && have+n > b.maxBytes {
			b.records.Add(-1) // wakes nobody: something is under way and will
			return false
		}
		if b.bytes.CompareAndSwap(have, have+n) {
			return true
		}
	}
}

// release gives back one record of n bytes.
func (b *budget) release(n int64) {
	bytes := b.bytes.Add(-n)
	records := b.records.Add(-1)
	if b.waiters.Load() > 0 && (records == 0 || bytes == 0 || records <= b.maxRecords*3/4 && bytes <= b.maxBytes/4*3) {
		b.mu.Lock()
		close(b.opened)
		b.opened = make(chan struct{})
		b.mu.Unlock()
	}
}

// empty waits until nothing is under way.
func (b *budget) empty(ctx context.Context) error {
	b.waiters.Add(1)
	defer b.waiters.Add(-1)
	for {
		opened := b.door()
		if b.records.Load() == 0 {
			return nil
		}
		select {
		case <-opened:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (b *budget) door() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.opened
}
