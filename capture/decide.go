package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/slot"
)

// plan is what to do next, and why.
type plan struct {
	gear Gear
	// renew: the catch-up begins with a new slot in place of one that cannot be used.
	renew bool
	// force: also if nothing is wrong with it.
	force bool
	why   error // nil: all is as it should be
}

// decide asks the server what a stream would find. An error of the Retry class:
// ask again; of another: an operator must act.
func (c *Capture) decide(ctx context.Context) (plan, error) {
	if !c.opt.polls() && !c.opt.Marks {
		return plan{gear: GearLog}, nil // the stream judges for itself; there is nothing to catch up from
	}
	if err := c.lookAtTables(ctx); err != nil {
		return plan{}, err
	}
	if c.opt.polls() {
		return plan{gear: GearPoll}, nil
	}
	phase, active, err := c.opt.Log.Assess(ctx)
	if c.opt.changesOver() && !active && (err == nil || isGap(err)) {
		// A new slot is of no use to a role that may not read it.
		if perr := c.opt.Log.Probe(ctx); perr != nil && event.ClassOf(perr) == event.Halt {
			err = perr
		}
	}
	return c.judge(phase, active, err)
}

// judge is the table of decisions; it asks nobody.
func (c *Capture) judge(phase event.Phase, active bool, err error) (plan, error) {
	switch {
	case err == nil && active && (phase == event.PhaseStreaming || !c.opt.Marks):
		return plan{gear: GearLog}, nil // another relay reads it: the stream waits its turn
	case err == nil && phase == event.PhasePolled && c.opt.Deletes:
		// The log holds what was polled and deleted meanwhile, and nothing can tell it
		// from what was not: it is given up, for all that was not published is in the table.
		return plan{gear: GearCatchUp, renew: true, force: true}, nil
	case err == nil && c.opt.Marks && phase != event.PhaseStreaming:
		return plan{gear: GearCatchUp}, nil
	case err == nil:
		return plan{gear: GearLog}, nil
	case event.ClassOf(err) == event.Retry:
		return plan{}, err
	case isGap(err) && c.opt.catchesUp():
		return plan{gear: GearCatchUp, renew: true, why: err}, nil
	case c.opt.changesOver() && isNotInitialised(err):
		return plan{gear: GearCatchUp, renew: true, why: err}, nil
	case c.opt.changesOver() && isPrecondition(err):
		return plan{gear: GearPoll, why: err}, nil
	}
	// The stream finds the same, says it, and looks again for what is missing.
	return plan{gear: GearLog}, nil
}

func isGap(err error) bool { return faultOf(err) == event.FaultGap }

func isPrecondition(err error) bool { return faultOf(err) == event.FaultPrecondition }

func isNotInitialised(err error) bool {
	var e *event.Error
	return errors.As(err, &e) && e.Anchor == slot.AnchorNotInitialised
}

func faultOf(err error) event.Fault {
	var e *event.Error
	if errors.As(err, &e) && e.Class == event.Halt {
		return e.Fault
	}
	return event.FaultOther
}

// decision is the source of the first gear: it has no events and gives way as
// soon as it is clear how to go on.
type decision struct {
	c      *Capture
	finish chan struct{}
	once   finishOnce
}

func (d *decision) Next(ctx context.Context) (*event.Batch, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-d.finish:
			cancel()
		case <-ctx.Done():
		}
	}()
	d.c.state(event.StateConnecting, event.Condition{})
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		callCtx, stop := context.WithTimeout(ctx, 30*time.Second)
		p, err := d.c.decide(callCtx)
		stop()
		switch {
		case d.finished():
			return nil, io.EOF
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err == nil:
			d.c.shift(p)
			return nil, fmt.Errorf("deciding how to read source %s: %w", d.c.opt.Log.Source(), event.ErrTurn)
		case isPrecondition(err) && !d.c.opt.ExitOnHalt:
			// An operator can provide it: say so, and look again.
			d.c.state(event.StateHalted, event.ConditionOf(err))
			pause(ctx, retryHalted)
			continue
		case event.ClassOf(err) != event.Retry:
			return nil, err
		}
		d.c.state(event.StateDisconnected, event.ConditionOf(err))
		d.c.opt.Log.Reconnect(err)
		pause(ctx, wait/2+rand.N(wait/2))
	}
}

func (d *decision) finished() bool {
	select {
	case <-d.finish:
		return true
	default:
		return false
	}
}

func (d *decision) Finish()                     { d.once.Do(func() { close(d.finish) }) }
func (d *decision) Confirm(event.Position)      {}
func (d *decision) Close(context.Context) error { return nil }

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
