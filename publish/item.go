package publish

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/walrelay/walrelay/event"
)

// inlineHeaders is how many headers an item holds without a slice of its own;
// the forze preset makes nine at most.
const inlineHeaders = 9

// item is one record on its way, from Publish to its result. Items are pooled.
//
// An item is the context of its own kgo.Record. That brings the shared promise
// function from the record back to the item without a closure per record, and it
// lets franz-go ask whether the record may still be sent (see Done).
type item struct {
	rec    kgo.Record
	inline [inlineHeaders]kgo.RecordHeader
	extra  []kgo.RecordHeader // kept across lives, for records with more headers

	ticket   event.Ticket
	origin   event.Origin
	hash     uint32
	spread   bool
	loose    bool
	partial  bool
	waits    bool // its key is held
	wide     bool // larger than a batch of the main client: sent alone
	part     int32
	charged  int64 // bytes taken from the budget
	millis   int64 // the timestamp that was asked for
	fallback int64 // milliseconds, for a refused timestamp
	retimed  uint8 // how often the timestamp was replaced
	refused  error // why it must not be sent; nil otherwise

	// lane and place are read by franz-go's goroutines, possibly a moment after the
	// item began another life: hence atomic, and any answer is then harmless.
	lane  atomic.Pointer[lane]
	place atomic.Uint64 // 1 + how many records the lane had buffered before; 0: not buffered
}

var items = sync.Pool{New: func() any { return new(item) }}

// newItem copies rec, but not the bytes it points at.
func newItem(rec *event.Record, t event.Ticket) *item {
	it := items.Get().(*item)
	it.ticket, it.origin = t, rec.Origin
	it.hash, it.spread, it.loose, it.partial = rec.Hash, rec.Spread, rec.Loose, rec.Partial
	it.millis, it.fallback = rec.Millis, rec.FallbackMillis
	it.rec.Key, it.rec.Value = rec.Key, rec.Value
	it.rec.Timestamp = time.UnixMilli(rec.Millis)
	it.rec.Context = it
	headers := it.inline[:0]
	if len(rec.Headers) > inlineHeaders {
		headers = it.extra[:0]
	}
	for _, h := range rec.Headers {
		headers = append(headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}
	if len(rec.Headers) > inlineHeaders {
		it.extra = headers
	}
	it.rec.Headers = headers
	it.charged = payload(rec)
	return it
}

// free gives the item to its next life. Nothing may be read from it afterwards.
func (it *item) free() {
	clear(it.rec.Headers) // those that were used
	if cap(it.extra) > 16*inlineHeaders {
		it.extra = nil
	}
	it.rec = kgo.Record{}
	it.origin, it.ticket = event.Origin{}, event.Ticket{}
	it.wide, it.waits, it.retimed, it.refused = false, false, 0, nil
	it.place.Store(0)
	items.Put(it)
}

// payload is what a record costs in the budget: the bytes of its key, value and headers.
func payload(rec *event.Record) int64 {
	n := len(rec.Key) + len(rec.Value)
	for i := range rec.Headers {
		n += len(rec.Headers[i].Key) + len(rec.Headers[i].Value)
	}
	return int64(n)
}

var closedChan = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// guardPatience bounds how long Done waits for promises that are already on
// their way. Giving up is safe: the records are then held back and sent again.
const guardPatience = 100 * time.Millisecond

// Done is franz-go's question whether this record, the first of its partition's
// first batch, may be written. Everything that the partition buffered before has
// been decided by then, so as soon as those promises have run, lane.broken says
// whether one of them failed: a later record must not pass it.
//
// franz-go asks with the partition's lock held; promises need none of its locks.
func (it *item) Done() <-chan struct{} {
	place := it.place.Load()
	l := it.lane.Load()
	if place == 0 || l == nil {
		return nil
	}
	if l.resolved.Load() < place-1 && !l.caughtUp(place-1) || l.broken.Load() {
		return closedChan
	}
	return nil
}

// caughtUp waits until n promises of the lane have run. As a rule they are about to.
// It waits for a signal and does not poll by the clock: in a test's bubble the clock
// stands still while someone waits for the partition's lock.
func (l *lane) caughtUp(n uint64) bool {
	for range 50 {
		if l.resolved.Load() >= n {
			return true
		}
		runtime.Gosched()
	}
	l.watched.Store(true)
	defer l.watched.Store(false)
	patience := time.NewTimer(guardPatience)
	defer patience.Stop()
	for l.resolved.Load() < n {
		select {
		case <-l.progress:
		case <-patience.C:
			return false
		}
	}
	return true
}

// Err is what franz-go fails the batch with after Done said so. It has to be
// this very error for franz-go to know whose cancellation it met.
func (it *item) Err() error { return context.Canceled }

// Deadline: none.
func (it *item) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value: none.
func (it *item) Value(any) any { return nil }
