package mongostream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/walrelay/walrelay/event"
)

const (
	// retryHalted is how often a missing precondition (a right, a setting, an
	// object) is looked for again: an operator who has provided it need not restart us.
	retryHalted = 15 * time.Second
	// wake bounds how long a waiting pump says nothing.
	wake = 250 * time.Millisecond
)

// pump runs session after session until the stream is closed or cannot go on.
func (s *Stream) pump(ctx context.Context) {
	// A closed stream waits for no answer; its cursor is killed by name.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-s.closed:
			cancel(errClosed)
		case <-ctx.Done():
		}
	}()
	p := &standing{}
	wait := s.opt.ReconnectMin
	s.state(event.StateConnecting, event.Condition{})
	for ctx.Err() == nil {
		before := p.received
		err := s.session(ctx, p)
		if err == nil || ctx.Err() != nil {
			continue
		}
		if string(before) != string(p.received) {
			p.attempts, wait = attempts{}, s.opt.ReconnectMin
		}
		err = Classify(err, "reading the change stream")
		pause := wait/2 + rand.N(wait/2)
		if !errors.Is(err, errTaken) && !errors.Is(err, errLapsed) && !errors.Is(err, errRestart) {
			switch p.attempts.dispose(err) {
			case disposeByTime:
				p.byTime = true
				continue
			case disposeReopen:
			case disposeHalt:
				if !s.halted(ctx, err) {
					return
				}
				pause = retryHalted
			}
		}
		switch {
		case errors.Is(err, errRestart):
			s.state(event.StateDisconnected, event.ConditionOf(err))
			s.end(ctx, err)
			return
		case errors.Is(err, errTaken):
			s.state(event.StateStandby, event.ConditionOf(err))
			pause = min(pause, time.Second)
		case pause != retryHalted:
			s.state(event.StateDisconnected, event.ConditionOf(p.attempts.explain(err)))
			if s.obs.Reconnect != nil {
				s.obs.Reconnect(err)
			}
		}
		wait = min(2*wait, s.opt.ReconnectMax)
		s.pause(ctx, pause)
	}
	s.state(event.StateStopped, event.Condition{})
}

// halted reports whether the stream may look again after an error that an operator must deal with.
func (s *Stream) halted(ctx context.Context, err error) bool {
	err = s.nameRight(ctx, err)
	s.state(event.StateHalted, event.ConditionOf(err))
	var e *event.Error
	if errors.As(err, &e) && e.Fault == event.FaultPrecondition && !s.opt.HaltOnPrecondition {
		s.hangUp() // rights are looked up at the login
		return true
	}
	s.end(ctx, err)
	return false
}

// explain says of a place that cannot be got past that it is the place.
func (a *attempts) explain(err error) error {
	if !a.stuck() {
		return err
	}
	return &event.Error{
		Class: event.Retry, Anchor: AnchorOversize, Cause: err,
		What: fmt.Sprintf("the change stream broke %d times at the same position", a.failures),
		Remedy: "if the server is well: an event of more than 16 MiB breaks the connection of some versions; look for the document that was inserted next, " +
			"and pass it by with 'walrelay position set'",
	}
}

func (s *Stream) pause(ctx context.Context, d time.Duration) {
	for until := time.Now().Add(d); time.Now().Before(until) && ctx.Err() == nil; {
		if s.obs.PumpBeat != nil {
			s.obs.PumpBeat()
		}
		select {
		case <-ctx.Done():
		case <-time.After(min(wake, time.Until(until))):
		}
	}
}

// end hands the error that ends the stream to the caller of Next, after what was read before it.
func (s *Stream) end(ctx context.Context, err error) {
	select {
	case s.chunks <- chunk{err: err}:
	case <-ctx.Done():
	}
}

// send hands a chunk over and reports whether it could.
func (s *Stream) send(ctx context.Context, c chunk) bool {
	for {
		select {
		case s.chunks <- c:
			return true
		case <-ctx.Done():
			c.release()
			return false
		case <-time.After(wake):
			if s.obs.PumpBeat != nil {
				s.obs.PumpBeat()
			}
		}
	}
}
