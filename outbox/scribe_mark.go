package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/walrelay/walrelay/event"
)

// keepBook is the marking goroutine.
func (s *Scribe) keepBook(ctx context.Context) {
	defer close(s.ended)
	beat := time.NewTicker(time.Second)
	defer beat.Stop()
	stop := s.stop
	for {
		more, err := s.settleSome(ctx)
		if s.obs.Beat != nil {
			s.obs.Beat()
		}
		switch {
		case err != nil:
			s.mu.Lock()
			if ctx.Err() == nil {
				s.failure = err
			}
			s.mu.Unlock()
			signal(s.room)
			<-orDone(ctx, s.stop)
			return
		case more:
			continue
		case stop == nil:
			return
		}
		select {
		case <-s.wake:
			pace(ctx, s.stop, markEvery)
		case <-beat.C:
		case <-stop:
			stop = nil // one more look, then the end
		}
	}
}

// settleSome marks the oldest notes that are due and tells the log how far it is.
// more: there may be others.
func (s *Scribe) settleSome(ctx context.Context) (more bool, err error) {
	s.mu.Lock()
	target := s.target
	notes, lines, end := s.book.ripe(target, markBatch)
	due := make([][]Mark, len(s.tables))
	for i := range s.book.notes[:notes] {
		if n := &s.book.notes[i]; !n.settled {
			due[n.table] = append(due[n.table], n.mark)
		}
	}
	next := len(s.book.lines) > lines && s.book.lines[lines].end.Compare(target) <= 0
	passed := s.passed
	s.mu.Unlock()
	if !next {
		end = target // what lies between is no row of ours
	}
	if end.Compare(passed) <= 0 {
		return false, nil
	}
	for i, marks := range due {
		if len(marks) > 0 {
			if err := s.mark(ctx, s.tables[i], marks); err != nil {
				return false, err
			}
		}
	}
	s.mu.Lock()
	s.book.tear(notes, lines)
	s.pass(end)
	s.mu.Unlock()
	signal(s.room)
	s.log.Confirm(end)
	return next, nil
}

// mark writes marks until every row has its outcome or is known to be gone.
func (s *Scribe) mark(ctx context.Context, t Table, marks []Mark) error {
	unseen := unseenWait
	fault := backoff{min: 100 * time.Millisecond, max: 5 * time.Second}
	repeated := false
	for {
		began := time.Now()
		m, err := t.Mark(ctx, marks)
		switch {
		case err == nil:
		case event.ClassOf(err) == event.Retry && ctx.Err() == nil:
			s.warn("marks", event.Condition{
				What:   fmt.Sprintf("outcomes cannot be written to %s: %v", t.Relation(), err),
				Remedy: "positions are not confirmed meanwhile, and reading stops when too many wait; look at the database",
				Anchor: "marks-failing",
			})
			repeated = true
			if !pace(ctx, nil, fault.next()) {
				return context.Cause(ctx)
			}
			continue
		default:
			return fmt.Errorf("marking rows of %s: %w", t.Relation(), err)
		}
		if fault.n > 0 {
			s.warn("marks", event.Condition{})
			fault.n = 0
		}
		if s.obs.Marked != nil {
			s.obs.Marked(m, time.Since(began))
		}
		if repeated {
			m.Settled = 0 // perhaps by the mark whose answer was lost
		}
		if c, changed := s.others.watch(t, m, time.Now()); changed {
			s.warn("foreign-poller", c)
		}
		if len(m.Unseen) == 0 {
			return nil
		}
		// The log is ahead of what other connections see, as long as a synchronous
		// standby takes at the worst.
		for i, u := range m.Unseen {
			marks[i] = marks[u]
		}
		marks = marks[:len(m.Unseen)]
		if !pace(ctx, nil, unseen) {
			return context.Cause(ctx)
		}
		unseen = min(2*unseen, unseenMax)
	}
}

func (s *Scribe) warn(key string, c event.Condition) {
	if s.obs.Warning != nil {
		s.obs.Warning(key, c)
	}
}

// pace waits; false when ctx ended meanwhile. stop cuts it short.
func pace(ctx context.Context, stop <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-stop:
	case <-ctx.Done():
		return false
	}
	return true
}

func orDone(ctx context.Context, stop <-chan struct{}) <-chan struct{} {
	if ctx.Err() != nil {
		return ctx.Done()
	}
	return stop
}

var errNoParking = errors.New("there is no place to put events aside")
