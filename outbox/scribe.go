package outbox

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/walrelay/walrelay/event"
)

// Log is the source before which a Scribe stands; relay.Source says what the methods promise.
type Log interface {
	Next(ctx context.Context) (*event.Batch, error)
	Finish()
	Confirm(pos event.Position)
	Close(ctx context.Context) error
	// Nudge asks the server where it is, so that an idle log's end is reached soon.
	Nudge()
}

const (
	// markEvery is the shortest time between two marks of few rows: it lets company gather.
	markEvery = 10 * time.Millisecond
	// markBatch is the most rows of one mark.
	markBatch = 5_000
	// unseenWait is how long to wait before a row whose transaction is not visible yet is
	// looked at again, doubled up to unseenMax.
	unseenWait, unseenMax = 2 * time.Millisecond, 200 * time.Millisecond
)

// ScribeObserver hears what a Scribe does. Every field may be nil; calls must not block.
type ScribeObserver struct {
	// Marked: one mark was written, in this time.
	Marked func(m Marked, took time.Duration)
	// Skipped counts events that an earlier process delivered already, or put aside.
	Skipped func(n int)
	// Warning is something an operator should know of; an empty What takes it back.
	Warning func(key string, c event.Condition)
	// Beat: the marking goroutine steps.
	Beat func()
}

// ScribeOptions of a Scribe.
type ScribeOptions struct {
	Options
	// Marks: outcomes are written to the rows. Otherwise positions are all there is.
	Marks bool
	// StartLine answers the end of the log now: below it the table is asked whether an
	// event was delivered by an earlier process. nil: it is not asked.
	StartLine func(ctx context.Context) (event.Position, error)
}

// Scribe is a log source that writes outcomes back to the table: acknowledgement,
// then mark, then confirm. It satisfies relay.Source, and is the desk of its feed.
//
// Three goroutines meet here: Next is the feeder's, Confirm the committer's, and
// marking has one of its own, so that a slow database holds up neither.
//
//	confirmed to the log ≤ end of the last transaction whose rows are marked
type Scribe struct {
	log     Log
	tables  []Table
	byName  map[string]int
	parking Parking // nil: nothing can be put aside
	gate    *Gate
	opt     ScribeOptions
	obs     ScribeObserver

	others foreign        // the marking goroutine's
	ready  bool           // the gate is loaded and the start line known; Next's
	below  event.Position // look up events that committed below; none: no more. Next's
	kept   keptWhole      // Next's
	wake   chan struct{}
	room   chan struct{}
	stop   chan struct{} // closed by Close: mark what is due and end
	ended  chan struct{}
	cancel context.CancelFunc

	mu      sync.Mutex
	book    book
	target  event.Position // the relay confirmed up to here
	passed  event.Position // the log was told
	failure error          // a mark cannot be written at all: Next returns it
	passing chan struct{}
}

// NewScribe stands before log. Parking may be nil. It starts the marking goroutine; Close ends it.
func NewScribe(log Log, tables []Table, parking Parking, gate *Gate, opt ScribeOptions, obs ScribeObserver) *Scribe {
	opt.Options = opt.WithDefaults()
	ctx, cancel := context.WithCancel(context.Background())
	s := &Scribe{
		log: log, tables: tables, byName: map[string]int{}, parking: parking, gate: gate, opt: opt, obs: obs,
		wake: make(chan struct{}, 1), room: make(chan struct{}, 1),
		stop: make(chan struct{}), ended: make(chan struct{}), cancel: cancel, passing: make(chan struct{}),
	}
	for i, t := range tables {
		s.byName[t.Relation()] = i
	}
	go s.keepBook(ctx)
	return s
}

// Next waits for the next batch of the log, without what was delivered before.
func (s *Scribe) Next(ctx context.Context) (*event.Batch, error) {
	if err := s.waitForRoom(ctx); err != nil {
		return nil, err
	}
	batch, err := s.log.Next(ctx)
	if err != nil {
		return nil, err
	}
	// Not before there is something: until then another relay may have the log, and what it marks
	// and puts aside meanwhile has to be known.
	if !s.ready {
		if err := s.prepare(ctx); err != nil {
			batch.Memory.Release()
			return nil, err
		}
		s.ready = true
	}
	if len(s.kept.events) > 0 {
		s.skipped(s.kept.takeOut(batch))
	}
	if !s.below.IsZero() {
		if err := s.skipDelivered(ctx, batch); err != nil {
			batch.Memory.Release()
			return nil, err
		}
	}
	if s.opt.Marks {
		s.mu.Lock()
		s.book.write(batch, s.tableOf)
		s.mu.Unlock()
	}
	return batch, nil
}

// tableOf is the table that an event is a row of; below zero for a message.
func (s *Scribe) tableOf(ev *event.Event) int {
	if ev.Fields[event.RowID] == nil {
		return -1
	}
	if i, ok := s.byName[ev.Relation]; ok {
		return i
	}
	return -1
}

// waitForRoom keeps what is acknowledged and not marked within bounds.
func (s *Scribe) waitForRoom(ctx context.Context) error {
	for {
		s.mu.Lock()
		n, failure := len(s.book.notes), s.failure
		s.mu.Unlock()
		switch {
		case failure != nil:
			return failure
		case n < s.opt.MarkBacklog+markBatch:
			return nil
		}
		select {
		case <-s.room:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Finish asks the log for an orderly end.
func (s *Scribe) Finish() { s.log.Finish() }

// Confirm takes the position below which everything is published or put aside.
func (s *Scribe) Confirm(pos event.Position) {
	s.mu.Lock()
	s.target = pos
	if !s.opt.Marks {
		s.pass(pos)
	}
	s.mu.Unlock()
	if s.opt.Marks {
		signal(s.wake)
		return
	}
	s.log.Confirm(pos)
}

// pass notes how far the log is told, and tells who waits for it. With the lock held.
func (s *Scribe) pass(at event.Position) {
	s.passed = at
	close(s.passing)
	s.passing = make(chan struct{})
}

// Close writes the marks that are due and ends the log. After ctx what is not
// marked stays pending: it was not confirmed either.
func (s *Scribe) Close(ctx context.Context) error {
	close(s.stop)
	select {
	case <-s.ended:
	case <-ctx.Done():
		s.cancel()
		<-s.ended
	}
	s.cancel()
	return s.log.Close(ctx)
}

// remembering is a Log that knows whether a process that starts now would be brought
// anything at or below a position again.
type remembering interface{ Remembered(at event.Position) bool }

const (
	// nudgeEvery is how often the log is asked for its end while somebody waits for it.
	nudgeEvery = 250 * time.Millisecond
	// rememberedEvery is how often it is asked whether it remembers a position.
	rememberedEvery = 20 * time.Millisecond
)

// WaitPassed waits until the log was told a position at or after at: everything
// that it brought at or below is delivered, and marked. It is remembered, too, where the log
// can say so: what a table reader then publishes, and deletes or forgets, does not come
// from the log again after a crash.
func (s *Scribe) WaitPassed(ctx context.Context, at event.Position) error {
	memory, _ := s.log.(remembering)
	tick := time.NewTicker(nudgeEvery)
	defer tick.Stop()
	for {
		s.mu.Lock()
		passed, passing := s.passed, s.passing
		s.mu.Unlock()
		if passed.Compare(at) >= 0 {
			if memory == nil || memory.Remembered(at) {
				return nil
			}
			tick.Reset(rememberedEvery)
		} else {
			s.log.Nudge()
		}
		select {
		case <-passing:
		case <-tick.C:
		case <-s.ended:
			return errors.New("the log is closed")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
