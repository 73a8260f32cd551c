package capture

import (
	"context"
	"fmt"
	"io"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/relay"
)

// Sweeps reports whether the source has rows that the log does not bring: a
// second feed then reads them beside the log.
func (c *Capture) Sweeps() bool {
	return !c.opt.polls() && (c.opt.Marks || c.opt.Parking != nil) && c.tenancy != nil
}

// OpenSweep opens the reader beside the log; it satisfies relay.Feed. While the
// log is not followed it waits.
func (c *Capture) OpenSweep() (relay.Source, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &sweepSource{c: c, changed: c.changed, stop: make(chan struct{})}
	if c.gear != GearLog || c.scribe == nil {
		return s, nil
	}
	scribe := c.scribe
	obs := c.obs.Poller
	obs.State, obs.Warning = nil, c.obs.Warning // the log's state is the source's
	g := outbox.Gear{
		Kind:      outbox.GearSweep,
		Delivered: func(ctx context.Context, at event.Position) error { return scribe.WaitPassed(ctx, at) },
	}
	tables := c.tables
	if !c.opt.Marks {
		tables = nil // their rows stay pending for ever; only what was put aside is to be read
	}
	s.poller = outbox.NewPoller(tables, c.tenancy, c.opt.Parking, c.gate, c.opt.Outbox, g, obs)
	s.ended = make(chan struct{})
	c.sweep, c.swept = s.poller, s.ended
	return s, nil
}

// SweepDesk is the desk of the sweep at hand; nil when there is none.
func (c *Capture) SweepDesk() outbox.Desk {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sweep
}

// sweepEnded is closed once no sweep works any more.
func (c *Capture) sweepEnded() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.swept
}

// sweepSource reads beside the log until the gear changes, then gives way to the
// next of its kind.
type sweepSource struct {
	c        *Capture
	poller   *outbox.Poller // nil: the log is not followed, there is nothing to do but wait
	changed  <-chan struct{}
	stop     chan struct{}
	stopOnce finishOnce
	ended    chan struct{}
}

func (s *sweepSource) Next(ctx context.Context) (*event.Batch, error) {
	turn := fmt.Errorf("the source reads in another way now: %w", event.ErrTurn)
	if s.poller == nil {
		select {
		case <-s.changed:
			return nil, turn
		case <-s.stop:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := make(chan struct{})
	defer close(watch)
	go func() {
		select {
		case <-s.changed:
			cancel(turn)
		case <-s.stop:
			cancel(io.EOF)
		case <-watch:
		}
	}()
	batch, err := s.poller.Next(ctx)
	switch {
	case err == nil:
		return batch, nil
	case s.finished():
		return nil, io.EOF
	case s.shifted():
		return nil, turn
	}
	return nil, err
}

func (s *sweepSource) shifted() bool {
	select {
	case <-s.changed:
		return true
	default:
		return false
	}
}

func (s *sweepSource) finished() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

// Finish ends it: nothing is half done between two events.
func (s *sweepSource) Finish() { s.stopOnce.Do(func() { close(s.stop) }) }

// Confirm: rows are settled one by one.
func (s *sweepSource) Confirm(event.Position) {}

// Settle hands a result to the reader.
func (s *sweepSource) Settle(n uint64, err error) bool {
	return s.poller != nil && s.poller.Settle(n, err)
}

func (s *sweepSource) Close(ctx context.Context) error {
	if s.poller == nil {
		return nil
	}
	err := s.poller.Close(ctx)
	s.c.mu.Lock()
	if s.c.sweep == outbox.Desk(s.poller) {
		s.c.sweep = nil
	}
	s.c.mu.Unlock()
	close(s.ended)
	return err
}
