package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/relay"
	"github.com/walrelay/walrelay/slot"
)

const (
	defaultProbe = 10 * time.Second
	// retryHalted is how often a missing precondition is looked for again.
	retryHalted = 15 * time.Second
)

// finishOnce guards a channel that several may close.
type finishOnce = sync.Once

// openPoller opens the table reader in the gear that was decided on.
func (c *Capture) openPoller(p plan) (relay.Source, error) {
	g := outbox.Gear{Kind: outbox.GearPoll}
	if p.gear == GearCatchUp {
		g.Kind, g.Coming = outbox.GearCatchUp, c.coming
	}
	obs := c.obs.Poller
	obs.State, obs.Warning = c.obs.State, c.obs.Warning
	tables := c.tables
	if p.gear == GearCatchUp && c.opt.Deletes {
		c.delivered = newDelivered()
		tables = make([]outbox.Table, len(c.tables))
		for i, t := range c.tables {
			tables[i] = &noting{t, c.delivered}
		}
	}
	poller := outbox.NewPoller(tables, c.tenancy, c.opt.Parking, c.gate, c.opt.Outbox, g, obs)
	c.shift(plan{gear: GearDeciding})
	c.enter(p.gear, poller, p.why)
	s := &pollSource{Poller: poller, c: c, plan: p, stop: make(chan struct{}), afterSweep: c.sweepEnded()}
	if p.gear == GearPoll && !c.opt.polls() {
		s.probe()
	}
	if p.gear == GearPoll && c.opt.Notify {
		s.listen()
	}
	return s, nil
}

// beginCatchUp runs once no other relay reads the table: a slot that cannot be
// used is replaced, before the first row is claimed. What is committed after that is in
// the new slot's log; what was committed before is in the table.
func (c *Capture) beginCatchUp(ctx context.Context, p plan) error {
	if !p.renew {
		return nil
	}
	// Another relay may have dealt with it while this one waited for its turn.
	phase, active, err := c.opt.Log.Assess(ctx)
	switch {
	case err == nil && active && phase != event.PhaseStreaming:
		// A relay that is gone looked ahead, and the server has not noticed yet.
		return &event.Error{
			Class: event.Retry, What: "the log of source " + c.opt.Log.Source() + " is still being read by a relay that is gone",
			Remedy: "nothing: the server lets it go, within wal_sender_timeout on Postgres; if it does not, see who reads it", Anchor: slot.AnchorSlotActive,
		}
	case active, err == nil && !p.force:
		return nil
	case err != nil && !isGap(err) && !isNotInitialised(err):
		return err
	}
	lost, err := c.opt.Log.Renew(ctx, p.why)
	if err == nil && lost.What != "" {
		c.warn(string(lost.Anchor), lost)
	}
	return err
}

// pollSource is the table reader as a gear. It gives way to another gear when it
// was told to; the relay's Finish ends it for good.
type pollSource struct {
	*outbox.Poller
	c          *Capture
	turning    atomic.Bool
	stop       chan struct{}
	stopOnce   finishOnce
	background sync.WaitGroup
	afterSweep <-chan struct{}
	plan       plan
	prepared   bool
}

func (s *pollSource) Next(ctx context.Context) (*event.Batch, error) {
	// A sweep that still works on rows must be through: it would be passed.
	select {
	case <-s.afterSweep:
	case <-s.stop:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	batch, err := s.next(ctx)
	switch {
	case s.plan.gear == GearCatchUp && errors.Is(err, event.ErrTurn):
		s.c.shift(plan{gear: GearLog}) // the slot was looked at before
		return nil, err
	case err != nil && s.plan.gear == GearCatchUp && s.c.opt.changesOver() && isPrecondition(err):
		// The log could not be made ready: poll until it can.
		s.c.shift(plan{gear: GearPoll, why: err})
		return nil, fmt.Errorf("%w: %w", event.ErrTurn, err)
	case errors.Is(err, io.EOF) && s.turning.Load():
		return nil, fmt.Errorf("the log can be read again: %w", event.ErrTurn)
	case err != nil && isPrecondition(err) && !s.c.opt.ExitOnHalt:
		// Something is missing that an operator can provide: say so, and look again.
		s.c.state(event.StateHalted, event.ConditionOf(err))
		select {
		case <-time.After(retryHalted):
		case <-s.stop:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("%w: %w", event.ErrTurn, err)
	}
	return batch, err
}

func (s *pollSource) next(ctx context.Context) (*event.Batch, error) {
	if !s.prepared {
		if err := s.prepare(ctx); err != nil {
			return nil, err
		}
		s.prepared = true
	}
	return s.Poller.Next(ctx)
}

// prepare does what must be done before the first claim.
func (s *pollSource) prepare(ctx context.Context) error {
	switch {
	case s.plan.gear == GearCatchUp:
		return s.prepareCatchUp(ctx)
	case !s.c.opt.polls():
		return s.insist(ctx, s.c.opt.Log.NotePolling)
	}
	return nil
}

// insist repeats f while it fails for a passing reason.
func (s *pollSource) insist(ctx context.Context, f func(context.Context) error) error {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err := f(ctx)
		if err == nil || event.ClassOf(err) != event.Retry {
			return err
		}
		s.c.state(event.StateDisconnected, event.ConditionOf(err))
		select {
		case <-time.After(wait):
		case <-s.stop:
			return io.EOF
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// prepareCatchUp waits until no other relay reads the table, and then readies the slot.
func (s *pollSource) prepareCatchUp(ctx context.Context) error {
	s.c.tenancy.Exclusive(true)
	for {
		changed := s.c.tenancy.Changed()
		view := s.c.tenancy.View()
		switch {
		case view.Err != nil:
			return view.Err
		case view.All:
			return s.insist(ctx, func(ctx context.Context) error { return s.c.beginCatchUp(ctx, s.plan) })
		}
		s.c.state(event.StateStandby, outbox.OthersHold(view))
		select {
		case <-changed:
		case <-s.stop:
			return io.EOF
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (s *pollSource) Finish() {
	s.stopOnce.Do(func() { close(s.stop) })
	s.Poller.Finish()
}

func (s *pollSource) Close(ctx context.Context) error {
	s.stopOnce.Do(func() { close(s.stop) })
	err := s.Poller.Close(ctx)
	s.background.Wait()
	return err
}

// probe looks from time to time whether the log can be read again.
func (s *pollSource) probe() {
	ctx, cancel := context.WithCancel(context.Background())
	s.background.Go(func() { <-s.stop; cancel() })
	s.background.Go(func() {
		tick := time.NewTicker(s.c.opt.ProbeEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			callCtx, stop := context.WithTimeout(ctx, 30*time.Second)
			p, err := s.c.decide(callCtx)
			stop()
			if err == nil && p.gear != GearPoll {
				s.turning.Store(true)
				s.Poller.Finish()
				return
			}
		}
	})
}

// listen wakes the poller when the trigger says that rows were written. Missing
// one costs no more than the sleep between two empty claims.
func (s *pollSource) listen() {
	ctx, cancel := context.WithCancel(context.Background())
	s.background.Go(func() { <-s.stop; cancel() })
	s.background.Go(func() {
		for ctx.Err() == nil {
			_ = s.c.opt.Log.Listen(ctx, s.Wake)
			pause(ctx, 5*time.Second)
		}
	})
}
