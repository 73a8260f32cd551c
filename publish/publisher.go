package publish

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/walrelay/walrelay/event"
)

// Publisher sends records to Kafka; it satisfies relay.Publisher. Publish and
// Refuse may be called from several goroutines; the order of the calls that
// counts is the order within one of them.
type Publisher struct {
	opts Options
	obs  Observer

	main, wide *kgo.Client
	promise    func(*kgo.Record, error)
	budget     *budget

	topics atomic.Pointer[map[string]*topic] // replaced as a whole, with mu held
	last   atomic.Pointer[topic]
	wake   chan struct{} // to tend; capacity 1

	// mayProduce belongs to tend.
	mayProduce bool

	ctx      context.Context
	cancel   context.CancelCauseFunc
	closing  atomic.Bool
	dead     atomic.Bool // what is not decided yet gets errClosed
	closed   sync.Once
	closeErr error

	anyStopped atomic.Bool
	desk       deskTroubles
	letters    chan struct{} // a lock: one dead letter at a time, so that it is alone in its batch

	mu      sync.Mutex // taken last: topic.mu, lane.mu, mu
	stopped map[uint16]*event.Error
	work    sync.WaitGroup // tend and the lanes' workers; Add with mu held
}

// Open connects. A broker that cannot be reached is a condition and no error; one
// that refuses us is a Halt error.
func Open(ctx context.Context, opts Options, obs Observer) (*Publisher, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	p := &Publisher{
		opts: opts, obs: obs,
		budget:  newBudget(opts.MaxInFlightRecords, opts.MaxInFlightBytes),
		wake:    make(chan struct{}, 1),
		letters: make(chan struct{}, 1),
		stopped: make(map[uint16]*event.Error),
		desk:    deskTroubles{waiting: make(map[string]int)},
	}
	p.topics.Store(&map[string]*topic{})
	p.promise = p.decided
	p.ctx, p.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	if err := p.connect(ctx); err != nil {
		p.cancel(err)
		return nil, err
	}
	if opts.OnPoison == PoisonDLQ {
		p.addTopic(opts.DLQTopic, nil)
	}
	for _, name := range opts.Topics {
		if legalTopic(name) {
			p.addTopic(name, nil)
		}
	}
	p.start(p.tend)
	return p, nil
}

// connect makes both clients and asks the broker for a sign of life.
func (p *Publisher) connect(ctx context.Context) error {
	main, wide, err := p.clientOptions()
	if err != nil {
		return err
	}
	if p.main, err = kgo.NewClient(main...); err != nil {
		return usage(err.Error(), "check kafka options")
	}
	if err := keepsPromises(p.main); err != nil {
		p.main.Close()
		return err
	}
	if p.wide, err = kgo.NewClient(wide...); err != nil {
		p.main.Close()
		return usage(err.Error(), "check kafka options")
	}
	ctx, cancel := context.WithTimeout(ctx, p.opts.RequestTimeout)
	defer cancel()
	if err := p.main.Ping(ctx); err != nil {
		c := p.explain("", err)
		if fatalAtStart(err) {
			p.main.Close()
			p.wide.Close()
			return &event.Error{
				Class: event.Halt, Fault: event.FaultPrecondition, What: c.What, Remedy: c.Remedy, Anchor: c.Anchor, Cause: err,
			}
		}
		p.obs.condition("kafka", c)
	}
	return nil
}

// Publish takes a record. It blocks only while the in-flight bounds are reached,
// for room or ctx. An error means that the ticket was not taken.
func (p *Publisher) Publish(ctx context.Context, rec *event.Record, t event.Ticket) error {
	return p.take(ctx, rec, t, nil)
}

// Refuse takes a record that must not be sent, with the poison error that says
// why, and applies the policy to it in order with its partition's other records.
func (p *Publisher) Refuse(ctx context.Context, rec *event.Record, t event.Ticket, why error) error {
	if why == nil {
		why = &event.Error{Class: event.Poison, What: "refused without a reason", Anchor: AnchorPoison}
	}
	return p.take(ctx, rec, t, why)
}

func (p *Publisher) take(ctx context.Context, rec *event.Record, t event.Ticket, why error) error {
	if p.closing.Load() {
		return errClosed()
	}
	if err := p.stopReason(t.Source); err != nil {
		return err
	}
	if rec.Partial && why == nil {
		why = &event.Error{Class: event.Poison, What: "refused before its record was complete", Anchor: AnchorPoison}
	}
	if err := p.budget.acquire(ctx, payload(rec)); err != nil {
		return fmt.Errorf("waiting for room to publish: %w", err)
	}
	it := newItem(rec, t)
	it.refused = why
	it.partial = it.partial || why != nil
	to := p.topicFor(it, rec.Topic)
	for {
		if sh := to.shape.Load(); sh == nil {
			if to.park(it) {
				return nil
			}
		} else if p.dispatch(to, sh, it, false) {
			return nil
		}
	}
}

// dispatch hands an item to its lane. It answers false when the shape was retired
// meanwhile. filling: see lane.park.
func (p *Publisher) dispatch(t *topic, sh *shape, it *item, filling bool) bool {
	if it.refused == nil {
		t.fit(it)
	}
	l := sh.pick(it)
	for {
		if it.refused == nil && !it.wide && !it.waits && l.enter(filling) {
			// Looked at again: the source may have been stopped since it was let in.
			if err := p.stopReason(it.ticket.Source); err != nil {
				p.settle(it, err)
				l.leave()
				return true
			}
			if !p.held(it) {
				p.send(p.main, l, it)
				return true
			}
			// Asked only now that the lane is known to be open: what a worker put aside
			// before it opened the lane is seen.
			it.waits = true
			l.leave()
		}
		if l.park(it, filling) {
			return true
		}
		if !filling && t.shape.Load() != sh {
			return false
		}
	}
}

// send gives an item to franz-go. The lane has counted it in.
func (p *Publisher) send(cl *kgo.Client, l *lane, it *item) {
	it.part = l.part
	it.place.Store(0)
	it.lane.Store(l)
	cl.Produce(context.Background(), &it.rec, p.promise)
}

// decided is the promise of all records.
func (p *Publisher) decided(rec *kgo.Record, err error) {
	it := rec.Context.(*item)
	l, placed := it.lane.Load(), it.place.Load() != 0
	if err == nil {
		p.settle(it, nil)
	} else {
		l.fail(it, err)
	}
	if placed {
		l.resolve() // after fail: see item.Done
	}
	l.leave()
}

// settle delivers a ticket's only result.
func (p *Publisher) settle(it *item, err error) {
	charged, ticket := it.charged, it.ticket
	it.free()
	p.opts.Result(ticket, err)
	p.budget.release(charged)
}

// start runs fn in a goroutine of the publisher's; false once it is closed.
func (p *Publisher) start(fn func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead.Load() {
		return false
	}
	p.work.Go(fn)
	return true
}

// InFlight is what was taken and is not decided yet.
func (p *Publisher) InFlight() (records, bytes int64) {
	return p.budget.records.Load(), p.budget.bytes.Load()
}

// closeGrace bounds the clean-up after the grace is over.
const closeGrace = 5 * time.Second

// Close takes nothing more, waits until all results are delivered or ctx ends,
// gives the rest a Retry error, and lets the broker go.
func (p *Publisher) Close(ctx context.Context) error {
	p.closed.Do(func() { p.closeErr = p.close(ctx) })
	return p.closeErr
}

func (p *Publisher) close(ctx context.Context) error {
	p.closing.Store(true)
	var left int64
	if p.budget.empty(ctx) != nil {
		left, _ = p.InFlight()
	}
	p.mu.Lock()
	p.dead.Store(true)
	p.mu.Unlock()
	p.cancel(ErrClosed)

	// The clients are closed beside us: nothing in here may depend on a broker.
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		p.main.Close()
		p.wide.Close()
		for _, t := range *p.topics.Load() {
			t.abandon()
		}
		p.work.Wait()
	}()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeGrace)
	defer cancel()
	select {
	case <-gone:
	case <-grace.Done():
		return errors.New("kafka: the client did not end within " + closeGrace.String())
	}
	if err := p.budget.empty(grace); err != nil {
		return fmt.Errorf("kafka: results were not delivered within %s: %w", closeGrace, err)
	}
	if left > 0 {
		return &event.Error{
			Class: event.Retry, Fault: event.FaultUnacknowledged, Anchor: AnchorClosed, Cause: ErrClosed,
			What: fmt.Sprintf("kafka: %d events were left without acknowledgement", left),
		}
	}
	return nil
}
