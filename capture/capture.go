package capture

import (
	"context"
	"sync"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/relay"
)

// Capture is one source: it opens what the relay reads from, gear by gear.
type Capture struct {
	opt     Options
	obs     Observer
	gate    *outbox.Gate
	tenancy *outbox.Tenancy // nil: nothing is claimed, ever

	clock Clock // nil: nobody asked; whoever asks for readings owns it

	ctx        context.Context // from Start to Close
	cancel     context.CancelFunc
	background sync.WaitGroup

	mu        sync.Mutex
	tables    []outbox.Table // as they were when the gear was decided on
	cared     bool           // the caretaker is at work
	delivered *delivered     // by the last catch-up, where rows are deleted; the feeder\'s
	next      plan
	gear      Gear
	changed   chan struct{} // closed and made anew when the gear changes
	stream    Stream        // of the log gear at hand
	scribe    *outbox.Scribe
	desk      outbox.Desk   // of the source at hand
	sweep     outbox.Desk   // of the sweep at hand
	swept     chan struct{} // closed when no sweep is at work
}

// New prepares a source; nothing is connected yet.
func New(opt Options, obs Observer) *Capture {
	opt.Outbox = opt.Outbox.WithDefaults()
	if opt.ProbeEvery == 0 {
		opt.ProbeEvery = defaultProbe
	}
	c := &Capture{
		opt: opt, obs: obs, gate: outbox.NewGate(),
		next: plan{gear: GearDeciding}, gear: GearDeciding, changed: make(chan struct{}), swept: closed(),
	}
	if opt.Leases != nil {
		c.tenancy = outbox.NewTenancy(opt.Leases, opt.Holder, opt.Outbox, obs.Tenancy)
	}
	return c
}

// Start begins what runs beside the relay; Close ends it.
func (c *Capture) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	c.ctx, c.cancel = ctx, cancel
	if c.tenancy != nil {
		c.background.Go(func() { c.tenancy.Run(ctx) })
	}
	if c.obs.Beat != nil {
		c.background.Go(func() { c.beat(ctx) })
	}
}

func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// lookAtTables asks what the tables are like now, and has them taken care of.
func (c *Capture) lookAtTables(ctx context.Context) error {
	tables, err := c.opt.Tables(ctx)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tables = tables
	if !c.cared && c.ctx != nil {
		c.cared = true
		care := outbox.NewCaretaker(tables, c.opt.Outbox, c.obs.Caretaker)
		c.background.Go(func() { care.Run(c.ctx) })
	}
	return nil
}

// Open opens the source of the gear that was decided on; it satisfies relay.Feed.
func (c *Capture) Open() (relay.Source, error) {
	c.mu.Lock()
	p := c.next
	c.mu.Unlock()
	switch p.gear {
	case GearLog:
		return c.openLog()
	case GearPoll, GearCatchUp:
		return c.openPoller(p)
	default:
		d := &decision{c: c, finish: make(chan struct{})}
		c.enter(GearDeciding, nil, nil)
		return d, nil
	}
}

// shift notes what to open next.
func (c *Capture) shift(p plan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next = p
}

// enter makes a gear known: its desk, and who may sweep beside it.
func (c *Capture) enter(g Gear, desk outbox.Desk, why error) {
	c.mu.Lock()
	c.desk = desk
	if g != GearLog {
		c.stream, c.scribe = nil, nil
	}
	fresh := g != c.gear
	c.gear = g
	close(c.changed)
	c.changed = make(chan struct{})
	c.mu.Unlock()
	if fresh && c.obs.Gear != nil {
		text := ""
		if why != nil {
			text = why.Error()
		}
		c.obs.Gear(g, text)
	}
}

func (c *Capture) state(st event.State, cond event.Condition) {
	if c.obs.State != nil {
		c.obs.State(st, cond)
	}
}

func (c *Capture) warn(key string, cond event.Condition) {
	if c.obs.Warning != nil {
		c.obs.Warning(key, cond)
	}
}

// Desk is the desk of the source at hand; nil when there is none.
func (c *Capture) Desk() outbox.Desk {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.desk
}

// Gear says what the source is doing.
func (c *Capture) Gear() Gear {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gear
}

// HeldKeys is the number of keys that are held.
func (c *Capture) HeldKeys() int { return c.gate.Len() }

// Progress is the ladder of positions; zero while the log is not followed.
func (c *Capture) Progress() event.Progress {
	c.mu.Lock()
	s := c.stream
	c.mu.Unlock()
	if s == nil {
		return event.Progress{}
	}
	return s.Progress()
}

// InFlightBytes is the memory that events of the log under way take.
func (c *Capture) InFlightBytes() int64 {
	c.mu.Lock()
	s := c.stream
	c.mu.Unlock()
	if s == nil {
		return 0
	}
	return s.InFlightBytes()
}

// Close gives the shards back, once the relay has ended.
func (c *Capture) Close(ctx context.Context) error {
	if c.clock != nil {
		c.clock.Close(ctx)
	}
	if c.cancel == nil {
		return nil
	}
	c.cancel()
	c.background.Wait()
	if c.tenancy == nil {
		return nil
	}
	return c.tenancy.Release(ctx)
}

// beat vouches for the loops of the log while there are none.
func (c *Capture) beat(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if c.Gear() != GearLog {
				c.obs.Beat()
			}
		case <-ctx.Done():
			return
		}
	}
}
