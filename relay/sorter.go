package relay

import (
	"context"
	"sync"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/hlc"
	"github.com/walrelay/walrelay/reorder"
)

// sorter stands between the feeders and the publisher for records of routes that
// ask for the order of stamps. Feeders add, one goroutine releases; a ticket is under way
// from the moment it is added, so that nothing at or above it is confirmed.
//
//	feeder ─► add ─► reorder.Buffer ─► release ─► publisher
//	            │          ▲
//	   batches ─┴─ passed ─┴─ readings of the source's clock
//
// Records are copied when they are added. Otherwise one that waits would hold the piece
// of the log it came in, and the bytes that a source may have in flight would bound the wait.
type sorter struct {
	r    *Relay
	opt  Ordering
	wake chan struct{} // something may go

	mu      sync.Mutex
	buf     *reorder.Buffer[*parcel]
	sources []sorted
	early   []*parcel // released for the sake of memory, in order
	sending bool      // the releaser has records in hand
	memory  copies
	idle    []*parcel
}

// sorted is what the sorter knows of a feed.
type sorted struct {
	feed      *feed
	progress  *reorder.Progress
	room      chan struct{} // something was released
	position  event.Position
	micros    int64
	watermark hlc.Stamp
	advanced  time.Time // when its server was last heard of, through the log
	attached  bool      // the session at hand says what is to come
	stalled   bool      // it was detached because it did not
	stalls    int64     // how often
	clock     int64     // of its server at the last reading, microseconds since 1970 UTC
	read      time.Time // when that was; zero: not in this session
}

// parcel is a record in the buffer, with its ticket.
type parcel struct {
	rec    event.Record
	poison error
	ticket event.Ticket
	feed   *feed
	skip   bool // refused by the feeder after it was added
}

func newSorter(r *Relay, opt Ordering, feeds []*feed) *sorter {
	s := &sorter{
		r: r, opt: opt, wake: make(chan struct{}, 1),
		buf: reorder.New[*parcel](len(feeds), opt.BufferBytes, opt.MaxDrift), sources: make([]sorted, len(feeds)),
	}
	for i, f := range feeds {
		s.sources[i].feed, s.sources[i].room = f, make(chan struct{}, 1)
		s.sources[i].progress = reorder.NewProgress(s.bounds())
		if f.Reading != nil {
			// From the start: what a source that cannot be reached yet holds may have to go first.
			s.sources[i].attached, s.sources[i].advanced = true, time.Now()
			s.buf.Attach(i)
		}
	}
	return s
}

func (s *sorter) bounds() reorder.Bounds {
	return reorder.Bounds{Transaction: s.opt.Transaction, Staged: s.opt.Staged, Skew: s.opt.ClockError}
}

// overhead is what a waiting record costs besides its bytes.
const overhead = 512

// add takes a record and its ticket, unless it answers an error. It waits for room as
// long as that can help.
func (s *sorter) add(ctx context.Context, f *feed, ev *event.Event, rec *event.Record, poison error, t event.Ticket) error {
	item := reorder.Item[*parcel]{
		Source: int(f.index), CommitMicros: ev.CommitMicros, WithinKey: rec.Order == event.ByStampWithinCommit,
		Bytes: int64(recordSize(rec)) + overhead,
	}
	if stamp, err := hlc.ParsePacked(ev.Fields[event.HLC]); err == nil {
		item.Stamp, item.Stamped = stamp, true
	}
	if len(rec.Key) > 0 && !rec.Spread {
		item.Key = keyOf(rec)
	}
	src := &s.sources[f.index]
	s.mu.Lock()
	s.passLocked(src)
	for !s.buf.Room(item.Source, item.Bytes) {
		if s.relieveLocked(item.Source) {
			continue
		}
		s.mu.Unlock()
		if err := s.waitForRoom(ctx, f); err != nil {
			return err
		}
		s.mu.Lock()
	}
	h := s.holdLocked(rec)
	h.feed, h.poison = f, poison
	h.ticket = event.Ticket{Memory: h.ticket.Memory, Entry: t.Entry, Source: t.Source}
	item.Value = h
	found := s.buf.Add(item)
	halt := s.opt.HaltOnLate && found.Has(reorder.Late) && !s.detachedLocked(src)
	h.skip = halt // with the lock given up it is the releaser's
	if !halt && found.Has(reorder.Late) && s.opt.LateHeader {
		h.rec.Headers = append(h.rec.Headers, event.Header{Key: "walrelay_late", Value: lateMark})
	}
	released := s.buf.Due()
	s.mu.Unlock()
	if released {
		s.wakeUp()
	}
	if halt {
		return errLate(item.Stamp)
	}
	t.Memory.Release() // its bytes were copied
	return nil
}

var lateMark = []byte("1")

// detachedLocked: nobody waited for this source, so that it is no fault of its bounds when its
// events come late.
func (s *sorter) detachedLocked(src *sorted) bool { return !src.attached || src.stalled }

func errLate(stamp hlc.Stamp) error {
	return &event.Error{
		Class: event.Halt, Anchor: "late-events",
		What:   "an event came with the stamp " + stamp.String() + ", and a greater one has been published: its transaction took longer than order.transaction, or its clock is further behind than order.clock_error",
		Remedy: "raise order.transaction or order.clock_error, or write order.late: emit, then start the relay again",
	}
}

// passed says that everything up to a position was added. The feeder calls it for each
// transaction; it counts with the next record, or at flush.
func (s *sorter) passed(f *feed, pos event.Position, micros int64) {
	src := &s.sources[f.index]
	src.position, src.micros = pos, micros
}

func (s *sorter) flush(f *feed) {
	src := &s.sources[f.index]
	s.mu.Lock()
	s.passLocked(src)
	due := s.buf.Due()
	s.mu.Unlock()
	if due {
		s.wakeUp()
	}
}

func (s *sorter) passLocked(src *sorted) {
	if src.position.IsZero() || src.feed.Reading == nil {
		return
	}
	behind := src.progress.Behind()
	src.progress.Delivered(src.position, src.micros)
	src.position = event.Position{}
	s.advanceLocked(src, src.progress.Behind() < behind)
}

// advanceLocked tells the buffer what the source's watermark is now. reached says that
// the stream came to where a reading was taken: the source is well, also where an open
// transaction keeps its watermark in place.
func (s *sorter) advanceLocked(src *sorted, reached bool) {
	i := int(src.feed.index)
	w := src.progress.Watermark()
	if !reached && w <= src.watermark {
		return
	}
	src.watermark = w
	s.buf.Advance(i, w)
	src.advanced = time.Now()
	if src.stalled {
		src.stalled = false
		if src.attached {
			s.buf.Attach(i)
		}
	}
}

// relieveLocked lets records go early where waiting cannot help: the source that needs room
// is the one that all wait for, and nothing is on its way out.
func (s *sorter) relieveLocked(source int) bool {
	if s.sending || len(s.early) > 0 || s.buf.Due() || !s.buf.Gated(source) {
		return false
	}
	for range releaseAtOnce {
		it, ok := s.buf.Relieve(source)
		if !ok {
			break
		}
		s.early = append(s.early, it.Value)
	}
	if len(s.early) == 0 {
		return false
	}
	s.wakeUp()
	return true
}

// press is for a feeder that waits for another reason which only released records can
// end: its window of unconfirmed transactions is full.
func (s *sorter) press(f *feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passLocked(&s.sources[f.index])
	s.relieveLocked(int(f.index))
}

func (s *sorter) waitForRoom(ctx context.Context, f *feed) error {
	src := &s.sources[f.index]
	t := time.NewTimer(time.Second)
	defer t.Stop()
	select {
	case <-src.room:
	case <-t.C:
		if s.r.obs.FeederBeat != nil {
			s.r.obs.FeederBeat(f.Name)
		}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

func (s *sorter) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// attach and detach follow the sessions of a feed: only one that reads a log can say
// what is still to come.
func (s *sorter) attach(f *feed) {
	if f.Reading == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	src := &s.sources[f.index]
	// Its log may be another one than that of the session before.
	src.progress, src.position, src.watermark = reorder.NewProgress(s.bounds()), event.Position{}, 0
	src.attached, src.stalled, src.advanced, src.read = true, false, time.Now(), time.Time{}
	s.buf.Attach(int(f.index))
}

func (s *sorter) detach(f *feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	src := &s.sources[f.index]
	if !src.attached {
		return
	}
	src.attached, src.stalled = false, false
	s.buf.Detach(int(f.index))
	s.wakeUp()
}
