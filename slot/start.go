package slot

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/event"
)

// retryHalted is how often a missing precondition (a right, a setting, an
// object) is looked for again: an operator who has provided it need not restart us.
const retryHalted = 15 * time.Second

// pump runs session after session until the stream is closed or cannot go on.
func (s *Stream) pump(ctx context.Context) {
	bo := backoff{min: s.opt.ReconnectMin, max: s.opt.ReconnectMax}
	s.state(event.StateConnecting, event.Condition{})
	for !s.closing.Load() && ctx.Err() == nil {
		err := s.session(ctx)
		if err == nil {
			break
		}
		if s.streamed.Swap(false) {
			bo.reset() // the server took us in: what ended it is a new event
		}
		err = Classify(err, Scene{Doing: "streaming", Slot: s.opt.Slot, Publication: s.opt.Publication, Settled: s.settled.Load() != 0})
		wait := bo.wait()
		var e *event.Error
		var busy *ErrSlotActive
		switch {
		case ctx.Err() != nil || s.closing.Load():
			continue
		case errors.Is(err, errRestart):
			s.state(event.StateDisconnected, event.ConditionOf(err))
			s.end(ctx, err)
			return
		case errors.As(err, &busy):
			s.state(event.StateStandby, event.ConditionOf(err))
			wait = min(wait, time.Second)
		case event.ClassOf(err) == event.Retry:
			s.state(event.StateDisconnected, event.ConditionOf(err))
			if s.obs.Reconnect != nil {
				s.obs.Reconnect(err)
			}
		case errors.As(err, &e) && e.Fault == event.FaultPrecondition && !s.opt.HaltOnPrecondition:
			s.state(event.StateHalted, event.ConditionOf(err))
			wait = retryHalted
		default:
			s.state(event.StateHalted, event.ConditionOf(err))
			s.end(ctx, err)
			return
		}
		s.pauseBetweenSessions(ctx, wait)
	}
	s.state(event.StateStopped, event.Condition{})
}

func (s *Stream) pauseBetweenSessions(ctx context.Context, d time.Duration) {
	for until := time.Now().Add(d); time.Now().Before(until) && !s.closing.Load() && ctx.Err() == nil; {
		if s.obs.PumpBeat != nil {
			s.obs.PumpBeat()
		}
		select {
		case <-ctx.Done():
		case <-time.After(min(wake, time.Until(until))):
		}
	}
}

// end hands the error that ends the stream to the caller of Next.
func (s *Stream) end(ctx context.Context, err error) {
	for !s.closing.Load() {
		select {
		case s.chunks <- chunk{err: err}:
			return
		case <-ctx.Done():
			return
		case <-time.After(wake):
		}
	}
}

// abort ends the running session with an error that the keeper found.
func (s *Stream) abort(err error) { s.aborted.CompareAndSwap(nil, &err) }

// session connects, finds out where to start, and streams until the connection
// ends (an error) or the stream is closed (nil).
func (s *Stream) session(ctx context.Context) error {
	dialCtx, cancel := context.WithTimeout(ctx, 2*callTimeout)
	defer cancel()
	facts, start, err := s.begin(dialCtx)
	if err != nil {
		return err
	}
	cfg, err := s.opt.ReplicationConfig()
	if err != nil {
		return err
	}
	sess, err := openSession(dialCtx, cfg, s.opt, start.At, pluginArgs(s.opt.Publication, len(s.opt.Messages) > 0))
	if err != nil {
		return s.nameHolder(ctx, err)
	}
	defer func() { _ = sess.conn.Close() }()

	s.received.Store(uint64(start.At))
	w := &wire{
		s: s, sess: sess, edge: edge{received: start.At},
		timeout: facts.WalSenderTimeout, every: s.opt.StatusInterval,
	}
	if facts.WalSenderTimeout > 0 {
		w.every = min(w.every, facts.WalSenderTimeout/3)
	}
	if err := w.send(ctx, chunk{fresh: &facts}); err != nil {
		return err
	}
	s.aborted.Store(nil)
	s.insists.Store(false)
	s.streaming.Store(true)
	s.began.Store(true)
	defer s.streaming.Store(false)
	s.state(event.StateStreaming, event.Condition{})
	if s.obs.Started != nil {
		s.obs.Started(start.At, start.Note)
	}
	began := time.Now()
	err = w.run(ctx)
	s.streamed.Store(time.Since(began) > settleEvery)
	if err != nil {
		return err
	}
	return w.farewell(ctx)
}

// begin asks the server over an ordinary connection who it is and what became
// of the slot, and decides where to start.
func (s *Stream) begin(ctx context.Context) (Facts, Start, error) {
	conn, err := Connect(ctx, s.opt)
	if err != nil {
		return Facts{}, Start{}, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if s.opt.Temporary {
		facts, err := readFacts(ctx, conn, s.opt.Slot)
		return facts, Start{At: facts.FlushLSN, Note: "a temporary slot, from now on"}, err
	}
	facts, err := VerifyForStream(ctx, conn, s.opt)
	if err != nil {
		return facts, Start{}, err
	}
	if facts.Slot.Active {
		return facts, Start{}, activeError(s.opt, facts)
	}
	if s.obs.Warning != nil {
		lacking := event.Condition{}
		if facts.Lacking != nil {
			lacking = event.ConditionOf(facts.Lacking)
		}
		s.obs.Warning("columns", lacking)
	}
	print, err := fingerprint(ctx, conn, s.opt)
	if err != nil {
		return facts, Start{}, err
	}
	start, err := s.startAt(ctx, conn, facts, print)
	if err != nil {
		return facts, start, err
	}
	s.identity.Lock()
	first := s.identity.known.SystemID == ""
	s.identity.known = Marker{
		SystemID: facts.SystemID, Timeline: facts.Timeline, Slot: s.opt.Slot,
		Phase: event.PhaseStreaming, Publication: print,
	}
	s.identity.Unlock()
	if first {
		// All below the start of a process was confirmed by an earlier one: repeat it,
		// or a server that forgot it in a restart keeps the log from there. On a
		// reconnect this would be wrong: events below the start are still under way.
		s.settled.Store(uint64(start.At))
		s.safe.Store(uint64(start.At))
	}
	return facts, start, s.mark(ctx, conn, s.confirmed())
}

// startAt is rule 1 of the positions: the greater of what the slot and what we
// remember, provided that it is the same log. Within one process we remember
// more: what was received is under way already and must not come twice.
func (s *Stream) startAt(ctx context.Context, conn *pgx.Conn, facts Facts, print string) (Start, error) {
	s.identity.Lock()
	known := s.identity.known
	s.identity.Unlock()
	if known.SystemID == "" {
		marker, err := s.recall(ctx, conn)
		if err != nil {
			return Start{}, err
		}
		start, err := Judge(marker, facts) // another cluster has another publication, too: that is said first
		if err == nil && marker != nil && marker.Publication != "" && marker.Publication != print {
			return Start{}, changedPublication(s.opt, marker.Confirmed)
		}
		return start, err
	}
	if known.SystemID != facts.SystemID || known.Timeline != facts.Timeline {
		// Another server behind the name. What is under way belongs to a log that
		// may have been cut there: settle it first, then begin anew with the marker.
		return Start{}, &event.Error{
			Class: event.Retry, Anchor: "failover", Cause: errRestart,
			What: fmt.Sprintf("the server changed from system %s, timeline %d to system %s, timeline %d",
				known.SystemID, known.Timeline, facts.SystemID, facts.Timeline),
		}
	}
	received := event.LSN(s.received.Load())
	known.Confirmed = max(received, event.LSN(s.settled.Load()))
	if print != known.Publication {
		return Start{}, changedPublication(s.opt, event.LSN(s.settled.Load()))
	}
	start, err := Judge(&known, facts)
	start.Note = "taken up again where the connection broke"
	return start, err
}

// errRestart asks for a new stream in place of this one.
var errRestart = errors.New("the stream has to begin anew")

func changedPublication(o Options, since event.LSN) error {
	return &event.Error{
		Class: event.Halt, Fault: event.FaultGap, Anchor: "publication-changed",
		What: fmt.Sprintf("publication %s was changed after %s: the log may have passed rows of the outbox that it does not show",
			o.Publication, since),
		Remedy: "compare the outbox rows that were committed since with the topics, publish what is missing, then accept the position with: walrelay position set --to-slot",
	}
}

// mark writes the marker, where there is one.
func (s *Stream) mark(ctx context.Context, conn *pgx.Conn, confirmed event.LSN) error {
	if !s.opt.writesMarker() {
		return nil
	}
	s.identity.Lock()
	m := s.identity.known
	s.identity.Unlock()
	if m.SystemID == "" {
		return errNoSession
	}
	m.Confirmed = confirmed
	return WriteMarker(ctx, conn, s.opt, m)
}

var errNoSession error = &event.Error{Class: event.Retry, What: "no session has begun yet"}

func (s *Stream) recall(ctx context.Context, conn *pgx.Conn) (*Marker, error) {
	if !s.opt.writesMarker() {
		return nil, nil
	}
	return ReadMarker(ctx, conn, s.opt)
}

// nameHolder says who has the slot, where the server only gives a PID.
func (s *Stream) nameHolder(ctx context.Context, err error) error {
	var busy *ErrSlotActive
	if cerr := Classify(err); !errors.As(cerr, &busy) {
		return err
	}
	callCtx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	conn, cerr := Connect(callCtx, s.opt)
	if cerr != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	facts, cerr := VerifyForStream(callCtx, conn, s.opt)
	if cerr != nil || !facts.Slot.Active {
		return err
	}
	return activeError(s.opt, facts)
}

// farewell waits for the keeper's last word, tells it to the server and goes.
func (w *wire) farewell(ctx context.Context) error {
	for {
		select {
		case <-w.s.final:
			w.now = time.Now()
			if err := w.status(false); err != nil {
				return nil
			}
			byeCtx, cancel := context.WithTimeout(ctx, 3*time.Second)
			defer cancel()
			_ = w.sess.goodbye(byeCtx)
			return nil
		default:
			if err := w.pause(ctx, w.s.final); err != nil {
				return nil
			}
		}
	}
}
