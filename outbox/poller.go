package outbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/walrelay/walrelay/event"
)

// PollerObserver hears what a Poller does, per statement and per transition. Every
// field may be nil; calls must not block.
type PollerObserver struct {
	// Claimed: one claim, empty ones too, and how long it took.
	Claimed func(rows int, took time.Duration)
	// Settled: outcomes that were written. parked counts rows given up to the parking store.
	Settled func(published, retried, failed, released, parked int)
	// Lost counts outcomes that hit nothing: the claim went to somebody else meanwhile.
	Lost func(rows int)
	// Reclaimed counts claims of others that were abandoned.
	Reclaimed func(rows int)
	// State of the source, with the reason where there is one.
	State func(event.State, event.Condition)
	// Warning is something an operator should know of; an empty What takes it back.
	Warning func(key string, c event.Condition)
	// HeldKeys is the number of keys that are held.
	HeldKeys func(n int)
	// Swept: one round of the sweep is over.
	Swept func(SweepResult)
	// Beat: the settling goroutine steps.
	Beat func()
}

// Poller is a source that claims rows: it satisfies relay.Source and relay.Settler, and
// is the [Desk] of its feed.
//
// Next claims, Settle takes results on the publisher's goroutines, and one goroutine
// of the Poller's own writes outcomes and renews claims. No transaction is open while
// the broker is awaited (but for tables whose claim is a lock).
//
//	under way = claimed and not settled ≤ InFlight + one batch
type Poller struct {
	tables  []Table
	traits  []Traits
	leases  *Tenancy
	parking Parking // nil: nothing can be parked
	gate    *Gate
	opt     Options
	loose   map[string]bool // routes that were met and do not hold back
	gear    Gear
	obs     PollerObserver

	wake     chan struct{} // a notification, or room, or a failure: Next looks again
	results  chan struct{} // there are outcomes to write
	finished chan struct{}
	finish   sync.Once
	begin    sync.Once
	ended    chan struct{} // the settling goroutine is gone
	ctx      context.Context
	cancel   context.CancelFunc

	outcomes []Outcome // the settling goroutine's

	nextMu sync.Mutex // held by Next
	turn   turnState  // Next's

	blocked atomic.Int64  // keys of which rows under way stay behind
	losses  atomic.Uint64 // the tenancy's, as all rows under way were claimed under, or are blocked

	mu       sync.Mutex
	ledger   ledger
	waiting  waiting
	under    []map[string]*entry
	wholes   map[int64]*entry
	count    int // rows in under, and wholes
	versions map[uint64]int
	tried    map[string]int // attempts at rows whose table cannot count
	resting  []map[string]time.Time
	done     []*entry // with a verdict that is not written yet
	closing  bool
	failure  error
	again    bool // something was given back that nothing holds: the catch-up goes round once more
	lookSoon bool // the database knows more than we do
	thirsty  bool // Next waits for results
	guarded  bool // versions counts Next itself, under guard
	guard    uint64
	state    event.State
	cond     event.Condition
}

// NewPoller makes a source in one gear. Without leases the key space is not cut, and
// everything is taken; without parking what is given up fails. Nothing runs before Next.
func NewPoller(tables []Table, leases *Tenancy, parking Parking, gate *Gate, opt Options, gear Gear, obs PollerObserver) *Poller {
	ctx, cancel := context.WithCancel(context.Background())
	p := &Poller{
		tables: tables, leases: leases, parking: parking, gate: gate, opt: opt.WithDefaults(), loose: map[string]bool{}, gear: gear, obs: obs,
		wake: make(chan struct{}, 1), results: make(chan struct{}, 1), finished: make(chan struct{}), ended: make(chan struct{}),
		ctx: ctx, cancel: cancel,
		ledger: ledger{keys: map[string]*keyState{}}, wholes: map[int64]*entry{},
		versions: map[uint64]int{}, tried: map[string]int{},
	}
	for _, t := range tables {
		p.traits = append(p.traits, t.Traits())
		p.under = append(p.under, map[string]*entry{})
		p.resting = append(p.resting, map[string]time.Time{})
	}
	for _, r := range opt.Loose {
		p.loose[r] = true
	}
	return p
}

// isLooseLocked reports whether a route does not hold back, and remembers it for claims.
func (p *Poller) isLooseLocked(route string) bool {
	loose, known := p.loose[route]
	if !known {
		loose = p.opt.IsLoose(route)
		p.loose[route] = loose
	}
	return loose
}

// looseLocked are the routes that were met and do not hold back.
func (p *Poller) looseLocked() (routes []string) {
	for r, loose := range p.loose {
		if loose {
			routes = append(routes, r)
		}
	}
	return routes
}

// Next claims the next batch. It sleeps only after an empty claim.
func (p *Poller) Next(ctx context.Context) (*event.Batch, error) {
	p.nextMu.Lock()
	defer p.nextMu.Unlock()
	p.begin.Do(p.start)
	defer p.unguard()
	fault := backoff{min: 100 * time.Millisecond, max: 5 * time.Second}
	for {
		if err := p.ending(ctx); err != nil {
			return nil, err
		}
		batch, wait, err := p.step(ctx)
		switch {
		case err == nil && batch != nil:
			return batch, nil
		case err == nil:
			fault.n = 0
			p.sleep(ctx, wait)
		case errors.Is(err, event.ErrTurn):
			return nil, err
		case p.ending(ctx) != nil:
			return nil, p.ending(ctx)
		case event.ClassOf(err) == event.Retry:
			p.say(event.StateDisconnected, event.Condition{
				What:   fmt.Sprintf("the outbox of source %s cannot be read: %v", p.opt.Source, err),
				Remedy: "nothing is claimed meanwhile; look at the database",
				Anchor: AnchorTable,
			})
			pace(ctx, p.finished, fault.next())
		default:
			return nil, err
		}
	}
}

// ending is why Next goes on no longer.
func (p *Poller) ending(ctx context.Context) error {
	select {
	case <-p.finished:
		return io.EOF
	default:
	}
	p.mu.Lock()
	failure := p.failure
	p.mu.Unlock()
	switch {
	case failure != nil:
		return failure
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return nil
}

// sleep waits for d, a notification, a result, a change of the leases, or the end.
func (p *Poller) sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(max(d, 0))
	defer t.Stop()
	select {
	case <-t.C:
	case <-p.wake:
	case <-p.leases.Changed():
	case <-p.finished:
	case <-ctx.Done():
	}
}

func (p *Poller) start() {
	switch p.gear.Kind {
	case GearCatchUp:
		p.leases.Ask(WantAll)
	case GearPoll:
		p.leases.Ask(WantShare)
	}
	p.say(event.StateConnecting, event.Condition{})
	go p.settleAll()
}

// Wake ends the sleep after an empty claim: rows were announced.
func (p *Poller) Wake() { signal(p.wake) }

// Finish has Next answer io.EOF. Nothing is half done: every claimed row was handed
// out, and its outcome will be written.
func (p *Poller) Finish() { p.finish.Do(func() { close(p.finished) }) }

// Confirm is of no use to a table: rows are settled one by one.
func (p *Poller) Confirm(event.Position) {}

// closeGrace is how long Close goes on after its time is over: a row that is not
// released waits for the reclaim, and counts as tried.
const closeGrace = time.Second

// Close writes the outcomes that are due and releases rows that have no result: they
// were never taken by the publisher. What is not written soon after ctx ended stays
// claimed, and is reclaimed later by whoever is there.
func (p *Poller) Close(ctx context.Context) error {
	p.Finish()
	p.nextMu.Lock()
	defer p.nextMu.Unlock()
	p.begin.Do(func() { close(p.ended) })
	p.mu.Lock()
	p.closing = true
	for p.waiting.first < p.waiting.next() {
		e := p.waiting.take(p.waiting.first)
		p.comeBackLocked(e, e.verdictAtClose())
	}
	p.mu.Unlock()
	signal(p.results)
	// A publisher that waited for its broker may have used up all the time.
	last, stop := detach(ctx, closeGrace)
	defer stop()
	select {
	case <-p.ended:
	case <-last.Done():
		p.cancel()
		<-p.ended
	}
	var err error
	p.cancel()
	p.mu.Lock()
	if left := len(p.done); left > 0 {
		err = fmt.Errorf("closing the table reader of source %s with %d outcomes not written: %w", p.opt.Source, left, context.Cause(ctx))
	}
	p.mu.Unlock()
	p.leases.Under(math.MaxUint64)
	p.say(event.StateStopped, event.Condition{})
	return err
}

// say tells the observer a new state.
func (p *Poller) say(s event.State, c event.Condition) {
	p.mu.Lock()
	same := p.state == s && p.cond == c
	p.state, p.cond = s, c
	p.mu.Unlock()
	if !same && p.obs.State != nil {
		p.obs.State(s, c)
	}
}

func (p *Poller) warn(key string, c event.Condition) {
	if p.obs.Warning != nil {
		p.obs.Warning(key, c)
	}
}
