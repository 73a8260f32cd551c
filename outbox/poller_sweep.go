package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/walrelay/walrelay/event"
)

// snapshotLimit is the most ids of one table in one round of the sweep.
const snapshotLimit = 10_000

// sweepAgain is the time between rounds that find something.
const sweepAgain = 200 * time.Millisecond

// SweepResult is one round of the sweep.
type SweepResult struct {
	Pending int // rows that were pending and due when it began
	Claimed int // of those, rows that the log had not brought
	Opened  int // keys that are free again
	Took    time.Duration
}

// sweepState is where a round of the sweep is.
type sweepState struct {
	phase    sweepPhase
	began    time.Time
	next     time.Time // when the next round is due
	ids      [][]string
	full     bool            // the snapshot has all there is of our shards
	whole    bool            // and they are all the shards
	then     uint64          // by the gate's clock, before the snapshot
	held     map[string]bool // keys that were held then: what is behind them is not in it
	look     uint64          // the gate's, when this round looked at what holds keys
	draining map[string]bool // keys that the gate holds and nothing else: what is behind them goes now
	seen     map[string]bool // keys of which this round found rows
	behind   map[string]bool // keys that had events kept whole behind them before the snapshot, and kept them all
	went     map[string]bool // keys whose events kept whole were handed out since the last look
	bare     map[string]bool // keys without rows: what is kept whole behind them may go
	more     bool            // keys came free that the snapshot left out
	seated   bool            // the shards were asked for
	proof    event.Position  // where the log must be before they are
	wholes   time.Time       // when parked events were last asked for
	result   SweepResult
}

type sweepPhase uint8

const (
	sweepResting sweepPhase = iota
	sweepLooking
	sweepClaiming
	sweepSettling
)

// sweep is one step of a round:
//
//	snapshot of what is pending, and L, the end of the log
//	wait until the log path is at L: what is pending still was not delivered by it
//	look at what holds keys: everything that was put aside at or below L is known now
//	claim, of the snapshot alone
//	once all is settled: open keys that nothing holds and nothing waits behind
//
// Each step may be repeated; a row that is pending stays so until it is published.
func (p *Poller) sweep(ctx context.Context, view LeaseView) (*event.Batch, time.Duration, error) {
	switch p.turn.phase {
	case sweepResting:
		if wait := time.Until(p.turn.next); wait > 0 {
			return nil, wait, nil
		}
		if err := p.snapshot(ctx, view); err != nil {
			return nil, 0, err
		}
		if p.turn.seated { // otherwise another may have swept meanwhile: from the start
			p.turn.phase = sweepLooking
		}
		return nil, 0, nil
	case sweepLooking:
		if err := p.lookForSweep(ctx, view); err != nil {
			return nil, 0, err
		}
		p.turn.phase = sweepClaiming
		batch, err := p.wholeEvents(ctx, view)
		if batch != nil {
			p.turn.result.Claimed += len(batch.Events)
		}
		return batch, 0, err
	case sweepClaiming:
		return p.claimSnapshot(ctx, view)
	default:
		if p.busy() {
			return nil, p.opt.Interval, nil
		}
		p.endRound()
		return nil, 0, nil
	}
}

// snapshot notes what is pending, and waits until the log path is where the log ended then.
func (p *Poller) snapshot(ctx context.Context, view LeaseView) error {
	p.say(event.StateStreaming, event.Condition{})
	s := &p.turn.sweepState
	s.began = time.Now()
	s.result, s.full, s.whole, s.then = SweepResult{}, true, view.All, p.gate.Now()
	s.ids = make([][]string, len(p.tables))
	var at event.Position
	// What is behind held keys stays out of it: it may be more than a snapshot takes.
	req := Request{Shards: view.Shards, Limit: snapshotLimit}
	p.mu.Lock()
	req.Loose = p.looseLocked()
	s.held, s.behind = map[string]bool{}, map[string]bool{}
	for key, h := range p.ledger.keys {
		if h.behind && !s.went[key] {
			s.behind[key] = true
		}
		if h.held() {
			s.held[key] = true
			req.Held = append(req.Held, key)
		}
	}
	p.mu.Unlock()
	for t, table := range p.tables {
		ids, end, err := table.Pending(ctx, req)
		if err != nil {
			return fmt.Errorf("looking for pending rows of %s: %w", table.Relation(), err)
		}
		s.ids[t] = ids
		s.full = s.full && len(ids) < snapshotLimit
		s.result.Pending += len(ids)
		if end.Compare(at) > 0 {
			at = end
		}
	}
	return p.waitForLog(ctx, at)
}

// lookForSweep learns what holds keys, and which keys nothing holds but what is
// behind them.
func (p *Poller) lookForSweep(ctx context.Context, view LeaseView) error {
	s := &p.turn.sweepState
	s.look = p.gate.Now()
	if err := p.look(ctx, view.Shards); err != nil {
		return err
	}
	p.turn.looked = time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	s.draining, s.seen, s.went = map[string]bool{}, map[string]bool{}, map[string]bool{}
	s.more = false
	for _, key := range p.gate.Keys() {
		h := p.ledger.keys[key]
		s.more = s.more || h != nil && h.behind
		switch {
		case h != nil && (h.held() || h.blocked):
		case s.held[key]:
			s.more = true // the next snapshot has what is behind it
		default:
			s.draining[key] = true
		}
	}
	p.addHeadsLocked()
	return nil
}

// takeSeat asks for the shards once the log path of this process is seen to work: the
// sweep belongs to the relay that has the log, and to no other.
func (p *Poller) takeSeat(ctx context.Context) error {
	if p.turn.seated {
		return nil
	}
	if p.turn.proof.IsZero() {
		p.turn.proof = anyPosition
	}
	if err := p.waitForLog(ctx, p.turn.proof); err != nil {
		return err
	}
	p.leases.Ask(WantAll)
	p.turn.seated = true
	return nil
}

// anyPosition is at or below every position of every log that is one.
var anyPosition = event.AtToken("0")

// addHeadsLocked puts those whose turn it is before the snapshot. They were in the
// hands of the log path, or of a table reader, and came back: the log brings them no more.
func (p *Poller) addHeadsLocked() {
	heads := make([][]string, len(p.tables))
	for _, h := range p.ledger.keys {
		if !h.held() {
			continue
		}
		ids, inOrder := h.turn(time.Now(), p.opt.Batch)
		for t := range heads {
			if len(ids) > 0 && (!inOrder || h.waiting[0].table == t) {
				heads[t] = append(heads[t], ids...)
			}
		}
	}
	for t, ids := range heads {
		p.turn.ids[t] = append(ids, p.turn.ids[t]...)
	}
}

// waitForLog waits for the log path, as long as it takes, or until Finish. Where that
// is long another relay may have the log: the shards are let go meanwhile.
func (p *Poller) waitForLog(ctx context.Context, at event.Position) error {
	if p.gear.Delivered == nil {
		return errors.New("the sweep cannot ask how far the log is")
	}
	p.unguard() // shards may be given back while we wait
	call, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan struct{})
	defer close(ended)
	unseat := time.AfterFunc(max(seatPatience, 3*p.opt.LeaseTTL), func() { p.leases.Ask(WantNone) })
	go func() {
		select {
		case <-p.finished:
			cancel(errFinished)
		case <-ended:
		}
	}()
	err := p.gear.Delivered(call, at)
	if !unseat.Stop() {
		p.turn.seated, p.turn.proof = false, at
	}
	if err != nil {
		return &event.Error{Class: event.Retry, What: "the sweep waits for the log", Anchor: AnchorTable, Cause: err}
	}
	return nil
}

// seatPatience is how long the log path may stand still before the shards are let go.
const seatPatience = 30 * time.Second

var errFinished = errors.New("the sweep is asked to end")

// claimSnapshot claims the next part of the snapshot.
func (p *Poller) claimSnapshot(ctx context.Context, view LeaseView) (*event.Batch, time.Duration, error) {
	s := &p.turn.sweepState
	for t := range p.tables {
		for len(s.ids[t]) > 0 {
			if !p.hasRoom() {
				return nil, p.opt.Interval, nil
			}
			n := min(len(s.ids[t]), p.opt.Batch, p.opt.InFlight)
			batch, rows, err := p.claim(ctx, t, view, s.ids[t][:n])
			if err != nil {
				return nil, 0, err
			}
			s.ids[t] = s.ids[t][n:]
			s.result.Claimed += rows
			if batch != nil {
				return batch, 0, nil
			}
		}
	}
	s.phase = sweepSettling
	return nil, 0, nil
}

// endRound opens keys and says what the round brought.
//
// Rows of a key go before what is kept whole behind it, and the store sees to it that none
// comes after as long as it keeps one ([Parking.LeaveBehind]). So a snapshot of all
// rows that has none of the key proves that none is left, if the store kept one from before
// the snapshot until now.
func (p *Poller) endRound() {
	s := &p.turn.sweepState
	p.mu.Lock()
	s.bare = map[string]bool{}
	for key := range s.draining {
		h := p.ledger.keys[key]
		if s.full && s.whole && !s.seen[key] && h != nil && h.behind && s.behind[key] && !s.went[key] {
			s.bare[key] = true
		}
		if !s.full || s.seen[key] || h != nil && !h.idle() {
			continue
		}
		if s.whole {
			p.gate.NothingPending(key, s.then)
		}
		if p.gate.OpenAsOf(key, s.look) {
			s.result.Opened++
		}
	}
	p.mu.Unlock()
	if p.obs.HeldKeys != nil {
		p.obs.HeldKeys(p.gate.Len())
	}
	s.phase = sweepResting
	s.next = s.began.Add(p.opt.SweepEvery)
	if s.result.Claimed > 0 || s.more || !s.full { // others may be behind those
		s.next = s.began.Add(min(p.opt.SweepEvery, sweepAgain))
	}
	s.result.Took = time.Since(s.began)
	if p.obs.Swept != nil {
		p.obs.Swept(s.result)
	}
}
