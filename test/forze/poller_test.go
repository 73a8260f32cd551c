package forze

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/outbox/postgres"
	"github.com/walrelay/walrelay/relay"
	"github.com/walrelay/walrelay/router"
	"github.com/walrelay/walrelay/slot"
	"github.com/walrelay/walrelay/test/rig"
)

// poller is one relay that polls, in this process: the outbox, the corridor and the
// router are the real ones, the broker follows a script.
type poller struct {
	*broker
	d       *database
	table   *watched
	source  *outbox.Poller
	name    string
	tenancy *outbox.Tenancy

	cancel, unlease context.CancelFunc
	done            chan error
	leased          chan struct{}

	mu       sync.Mutex
	claims   []int // rows of each claim
	states   []event.State
	retried  int
	parked   int
	reclaims int
	lost     int
}

// setting says how a poller is made.
type setting struct {
	opt    outbox.Options
	routes []router.Route
	grace  time.Duration
	noPark bool
	// before is asked before each call of the table; its error is the call's.
	before func(op string, n int) error
}

// watched counts the calls of a table.
type watched struct {
	outbox.Table
	before func(op string, n int) error

	mu       sync.Mutex
	calls    map[string]int
	outcomes [][]outbox.Outcome
}

func (w *watched) enter(op string) error {
	w.mu.Lock()
	w.calls[op]++
	n := w.calls[op]
	w.mu.Unlock()
	if w.before != nil {
		return w.before(op, n)
	}
	return nil
}

func (w *watched) count(op string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls[op]
}

func (w *watched) Claim(ctx context.Context, r outbox.Request) (*outbox.Claim, error) {
	if err := w.enter("claim"); err != nil {
		return nil, err
	}
	return w.Table.Claim(ctx, r)
}

func (w *watched) Settle(ctx context.Context, o []outbox.Outcome) ([]int, error) {
	w.mu.Lock()
	w.outcomes = append(w.outcomes, slices.Clone(o))
	w.mu.Unlock()
	if err := w.enter("settle"); err != nil {
		return nil, err
	}
	return w.Table.Settle(ctx, o)
}

func (w *watched) Reclaim(ctx context.Context, r outbox.Reclaim) (int, error) {
	if err := w.enter("reclaim"); err != nil {
		return 0, err
	}
	return w.Table.Reclaim(ctx, r)
}

// store opens the table as a relay does.
func (d *database) store() (*postgres.Database, *postgres.Table) {
	d.t.Helper()
	schema, err := event.NewSchema(event.Forze, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	so := slot.Options{Source: "orders", DSN: d.pg.URL(d.name), Schema: schema}
	db := postgres.New(postgres.Options{
		Source: "orders", Owner: "test/orders", Schema: schema, AfterPublish: postgres.MarkIt, Claim: postgres.ClaimRow, Bookkeeping: "walrelay",
		Tables:  []postgres.Name{{Schema: "public", Name: "outbox"}},
		Connect: func(ctx context.Context) (*pgx.Conn, error) { return slot.Connect(ctx, so) },
		Classify: func(err error, doing string) error {
			return slot.Classify(err, slot.Scene{Doing: doing, Settled: true})
		},
	})
	d.t.Cleanup(func() { _ = db.Close(context.Background()) })
	tables, err := db.Tables(context.Background())
	if err != nil {
		d.t.Fatal(err)
	}
	return db, tables[0]
}

var made struct {
	sync.Mutex
	n int
}

// poll starts a poller.
func (d *database) poll(s script, set setting) *poller {
	d.t.Helper()
	db, table := d.store()
	schema, _ := event.NewSchema(event.Forze, nil)
	rt, err := router.New(router.Options{Source: "orders", Schema: schema, Routes: set.routes})
	if err != nil {
		d.t.Fatal(err)
	}
	made.Lock()
	made.n++
	p := &poller{
		broker: newBroker(s), d: d, name: fmt.Sprintf("poller %d", made.n), done: make(chan error, 1), leased: make(chan struct{}),
		table: &watched{Table: table, before: set.before, calls: map[string]int{}},
	}
	made.Unlock()
	opt := set.opt
	opt.Source = "orders"
	or(&opt.Interval, 50*time.Millisecond)
	or(&opt.LeaseTTL, 3*time.Second)
	or(&opt.ReclaimAfter, time.Minute)
	or(&opt.BackoffMin, 100*time.Millisecond)
	opt.LooseRoute = rt.Loose
	var parking outbox.Parking
	if !set.noPark {
		parking = db.Parking()
	}
	p.tenancy = outbox.NewTenancy(db.Leases(), p.name, opt.WithDefaults(), outbox.TenancyObserver{})
	source := outbox.NewPoller([]outbox.Table{p.table}, p.tenancy, parking, outbox.NewGate(), opt, outbox.Gear{Kind: outbox.GearPoll}, p.observer())
	p.desk, p.source = source, source
	or(&set.grace, 10*time.Second)
	r := relay.New(relay.Options{Grace: set.grace, ExitOnHalt: true}, relay.Observer{}, []relay.Feed{{
		Name: "orders", Router: rt, Open: func() (relay.Source, error) { return source, nil },
	}})
	p.result = r.Result
	ctx, cancel := context.WithCancel(context.Background())
	leaseCtx, unlease := context.WithCancel(context.Background())
	p.cancel, p.unlease = cancel, unlease
	go func() {
		defer close(p.leased)
		p.tenancy.Run(leaseCtx)
	}()
	go func() { p.done <- r.Run(ctx, p.broker) }()
	d.t.Cleanup(func() { _ = p.stop() })
	return p
}

func or[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

func (p *poller) observer() outbox.PollerObserver {
	note := func(f func()) {
		p.mu.Lock()
		defer p.mu.Unlock()
		f()
	}
	return outbox.PollerObserver{
		Claimed:   func(rows int, _ time.Duration) { note(func() { p.claims = append(p.claims, rows) }) },
		Settled:   func(_, retried, _, _, parked int) { note(func() { p.retried += retried; p.parked += parked }) },
		Lost:      func(n int) { note(func() { p.lost += n }) },
		Reclaimed: func(n int) { note(func() { p.reclaims += n }) },
		State:     func(s event.State, _ event.Condition) { note(func() { p.states = append(p.states, s) }) },
	}
}

// saw waits until the poller has seen something; f is called under its lock.
func (p *poller) saw(what string, f func() bool) {
	p.d.t.Helper()
	rig.Eventually(p.d.t, what, soon, func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if !f() {
			return fmt.Errorf("claims %v, states %v, retried %d, parked %d, reclaimed %d", p.claims, p.states, p.retried, p.parked, p.reclaims)
		}
		return nil
	})
}

// stop ends it in good order and answers what its relay answered.
func (p *poller) stop() error {
	if p.cancel == nil {
		return nil
	}
	p.cancel()
	p.cancel = nil
	err := <-p.done
	p.unlease()
	<-p.leased
	_ = p.tenancy.Release(context.Background())
	return err
}

// ended waits until its relay ends by itself.
func (p *poller) ended() error {
	p.d.t.Helper()
	select {
	case err := <-p.done:
		p.done <- err
		_ = p.stop()
		return err
	case <-time.After(soon):
		p.d.t.Fatal("the relay goes on")
		return nil
	}
}

// mustStop ends it and wants no error.
func (p *poller) mustStop(t *testing.T) {
	t.Helper()
	if err := p.stop(); err != nil {
		t.Fatalf("the stop answered: %v", err)
	}
}
