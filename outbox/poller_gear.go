package outbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/walrelay/walrelay/event"
)

// GearKind is what a Poller is for.
type GearKind uint8

// The gears.
const (
	// GearPoll is the main path of capture: poll.
	GearPoll GearKind = iota
	// GearCatchUp brings everything that is pending before a log is read; it needs all
	// shards for itself, and ends with event.ErrTurn.
	GearCatchUp
	// GearSweep runs beside the log and finds what that will not bring.
	GearSweep
)

// Gear is a kind with what it needs.
type Gear struct {
	Kind GearKind
	// Coming calls each with the rows that the log, once it is followed, will bring of those
	// that are committed already. GearCatchUp only; nil: none.
	Coming func(ctx context.Context, each func(relation string, id []byte)) error
	// Delivered waits until everything that the log brought at or below a position is
	// delivered, and marked. GearSweep only.
	Delivered func(ctx context.Context, at event.Position) error
}

// turnState is where Next is; Next's own.
type turnState struct {
	version   uint64 // of the lease view that the ledger was loaded under
	loaded    bool
	looked    time.Time
	reclaimed time.Time
	fence     Fence       // of the last claim that was answered
	doubt     bool        // since then a claim was not: it may have been made all the same
	blind     bool        // nothing is claimed before a look: a claim was not answered, or a look failed
	table     int         // to be asked next
	arrears   []*arrears  // by table, in a catch-up
	rows      []Row       // room for those of the next claim, and
	batch     event.Batch // for what is made of them
	moving    bool        // a claim passed over keys that are held by rows under way: others of them will come

	sweepState
}

// step brings a batch, or how long to sleep.
func (p *Poller) step(ctx context.Context) (*event.Batch, time.Duration, error) {
	if p.gear.Kind == GearSweep {
		if err := p.takeSeat(ctx); err != nil {
			return nil, 0, err
		}
	}
	view, wait, err := p.follow(ctx)
	if wait > 0 || err != nil {
		return nil, wait, err
	}
	if p.gear.Kind == GearSweep {
		return p.sweep(ctx, view)
	}
	p.say(event.StateStreaming, event.Condition{})
	if !p.hasRoom() {
		return nil, p.opt.Interval, nil
	}
	if batch, err := p.wholeEvents(ctx, view); batch != nil || err != nil {
		return batch, 0, err
	}
	if err := p.noteArrears(ctx); err != nil {
		return nil, 0, err
	}
	p.turn.moving = false
	for range p.tables {
		t := p.turn.table
		p.turn.table = (t + 1) % len(p.tables)
		batch, rows, err := p.claim(ctx, t, view, nil)
		if err != nil {
			return nil, 0, err
		}
		if batch != nil {
			return batch, 0, nil
		}
		if rows > 0 {
			return nil, 0, nil // all of them were released: again
		}
	}
	switch {
	case p.gear.Kind != GearCatchUp:
		return nil, p.idleFor(), nil
	case !p.turn.moving:
		return p.caughtUp()
	case p.busy():
		return nil, p.opt.Interval, nil
	}
	return nil, 0, nil // what held the keys came back meanwhile
}

// follow takes over what the tenancy says: nothing is claimed before what was left
// behind by dead holders is reclaimed, and what holds keys is known.
func (p *Poller) follow(ctx context.Context) (view LeaseView, wait time.Duration, err error) {
	// Said before it is believed: a shard is not given back while a claim is on its way.
	for {
		view = p.leases.View()
		p.guardVersion(view.Version)
		if p.leases.View().Version == view.Version {
			break
		}
	}
	p.mu.Lock()
	p.cutLocked(view.Losses)
	look := p.lookSoon && time.Since(p.turn.looked) >= lookApart
	p.mu.Unlock()
	switch {
	case view.Err != nil:
		return view, 0, view.Err
	case view.Shards.Of > 0 && len(view.Shards.Own) == 0, p.gear.Kind == GearCatchUp && !view.All:
		p.unguard()
		p.say(event.StateStandby, OthersHold(view))
		return view, time.Second, nil
	}
	moved := !p.turn.loaded || p.turn.version != view.Version
	general := time.Since(p.turn.reclaimed) >= min(p.opt.ReclaimAfter/2, 15*time.Second)
	if moved || general || p.turn.doubt || len(view.Tenures) > 0 {
		if err := p.reclaim(ctx, view, general); err != nil {
			return view, 0, err
		}
		if general {
			p.turn.reclaimed = time.Now()
		}
		p.mu.Lock()
		look = look || p.lookSoon
		p.mu.Unlock()
	}
	if moved && p.turn.loaded {
		p.mu.Lock()
		p.forgetOwnLocked()
		p.mu.Unlock()
	}
	// The sweep looks at a time of its own, between its snapshot and its claims.
	if moved || p.turn.blind || p.gear.Kind != GearSweep && (look || time.Since(p.turn.looked) >= lookEvery) {
		p.turn.blind = true
		if err := p.look(ctx, view.Shards); err != nil {
			return view, 0, err
		}
		p.turn.blind = false
		p.turn.loaded, p.turn.version, p.turn.looked = true, view.Version, time.Now()
	}
	return view, 0, nil
}

// guardVersion says that Next works under a version of the leases.
func (p *Poller) guardVersion(v uint64) {
	p.mu.Lock()
	p.versions[v]++
	if p.guarded {
		p.leaveVersionLocked(p.guard, 1)
	}
	p.guarded, p.guard = true, v
	lowest := p.lowestLocked()
	p.mu.Unlock()
	p.leases.Under(lowest)
}

// unguard says that Next does nothing.
func (p *Poller) unguard() {
	p.mu.Lock()
	if p.guarded {
		p.leaveVersionLocked(p.guard, 1)
	}
	p.guarded = false
	lowest := p.lowestLocked()
	p.mu.Unlock()
	p.leases.Under(lowest)
}

// forgetOwnLocked drops what is known here alone: whoever has the shard now knows
// better. A row that a claim of ours still locks would be passed: it is kept.
func (p *Poller) forgetOwnLocked() {
	for _, h := range p.ledger.keys {
		h.waiting = slices.DeleteFunc(h.waiting, func(w waiter) bool { return w.memory && !p.fencedLocked(w.table, w.fence) })
	}
	clear(p.tried)
	for t := range p.resting {
		clear(p.resting[t])
	}
}

// OthersHold is why a member waits that holds no shards, or not all that it needs.
func OthersHold(view LeaseView) event.Condition {
	if len(view.Others) == 0 {
		return event.Condition{What: "waiting for a share of the key space", Anchor: AnchorStandby}
	}
	return event.Condition{
		What:   fmt.Sprintf("%s: other relays hold the shards of this source", strings.Join(view.Others, ", ")),
		Remedy: "nothing, if that is meant; otherwise stop them: shards of a dead one come free by themselves",
		Anchor: AnchorStandby,
	}
}

// hasRoom: a whole claim may come.
func (p *Poller) hasRoom() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.thirsty = p.opt.InFlight-p.count < min(p.opt.Batch, p.opt.InFlight)
	return !p.thirsty
}

// busy: something is under way; its results will wake Next.
func (p *Poller) busy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.thirsty = p.count > 0
	return p.thirsty
}

// idleFor is how long to sleep when nothing was there: until the next attempt is due
// at the latest.
func (p *Poller) idleFor() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	wait := p.opt.Interval
	for _, h := range p.ledger.keys {
		if len(h.waiting) > 0 && h.under == 0 && !h.parked && h.wholes == 0 && !h.waiting[0].processing {
			wait = min(wait, h.waiting[0].due.Sub(now))
		}
	}
	if p.lookSoon {
		wait = min(wait, lookApart-now.Sub(p.turn.looked))
	}
	return max(wait, time.Millisecond)
}

// caughtUp ends the catch-up when nothing is left that it could bring: a claim was
// empty with nothing under way.
func (p *Poller) caughtUp() (*event.Batch, time.Duration, error) {
	if p.busy() {
		return nil, p.opt.Interval, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.again {
		p.again = false
		return nil, 0, nil
	}
	return nil, 0, fmt.Errorf("the backlog of source %s is published: %w", p.opt.Source, event.ErrTurn)
}
