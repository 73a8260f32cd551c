package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/relay"
	"github.com/walrelay/walrelay/test/outboxfake"
)

// process is one relay process with a poller.
type process struct {
	name    string
	poller  *outbox.Poller
	tenancy *outbox.Tenancy
	table   *outboxfake.Table
	dead    atomic.Bool
	n       tallies
	ended   bool

	cancel  context.CancelFunc
	done    chan error
	leaseUp context.CancelFunc
	leased  chan struct{}
}

type tallies struct {
	claims, rows, published, retried, failed, released, parked, lost, reclaimed atomic.Int64
	rounds                                                                      atomic.Int64
	opened                                                                      atomic.Int64
	state                                                                       atomic.Value
}

// setup says how a process is made; zero values are a plain poller of a forze table.
type setup struct {
	name    string
	kind    outbox.Traits
	opt     outbox.Options
	gear    outbox.Gear
	gate    *outbox.Gate
	delay   func() time.Duration
	room    int
	noLease bool
	noPark  bool
	before  func(op string) error
	after   func(op string) error
	slow    func(op string)
	prepare func(*process)
	parking func(outbox.Parking) outbox.Parking // stands before the store
	next    func() (relay.Source, outbox.Desk)  // the successor after a turn
}

func short() time.Duration { return time.Millisecond }

func start(t *testing.T, db *outboxfake.DB, b *broker, s setup) *process {
	t.Helper()
	p := &process{name: s.name, done: make(chan error, 1), leased: make(chan struct{})}
	if s.kind == (outbox.Traits{}) {
		s.kind = outboxfake.ForzeRow
	}
	if s.delay == nil {
		s.delay = short
	}
	if s.gate == nil {
		s.gate = outbox.NewGate()
	}
	if s.room == 0 {
		s.room = 10_000
	}
	gone := func(f func(string) error) func(string) error {
		return func(op string) error {
			if p.dead.Load() {
				return &event.Error{Class: event.Retry, What: "the process is dead"}
			}
			if f != nil {
				return f(op)
			}
			return nil
		}
	}
	p.table = &outboxfake.Table{DB: db, Kind: s.kind, Before: gone(s.before), After: s.after, Slow: s.slow}
	leases := &outboxfake.Leases{DB: db, Before: gone(nil)}
	var parking outbox.Parking
	if !s.noPark {
		parking = &outboxfake.Parking{DB: db, Kind: s.kind, Before: gone(nil)}
		if s.parking != nil {
			parking = s.parking(parking)
		}
	}
	if !s.noLease {
		p.tenancy = outbox.NewTenancy(leases, s.name, s.opt, outbox.TenancyObserver{})
		ctx, cancel := context.WithCancel(context.Background())
		p.leaseUp = cancel
		go func() {
			defer close(p.leased)
			p.tenancy.Run(ctx)
		}()
	}
	loose := map[string]bool{}
	for _, r := range s.opt.Loose {
		loose[r] = true
	}
	if s.prepare != nil {
		s.prepare(p)
	}
	p.poller = outbox.NewPoller([]outbox.Table{p.table}, p.tenancy, parking, s.gate, s.opt, s.gear, p.n.observer())

	pub := newLanes(b, s.delay, &p.dead, s.room)
	pub.desk, pub.name = p.poller, s.name
	turned := false
	feed := relay.Feed{Name: s.name, Router: rowRouter{loose}, Open: func() (relay.Source, error) {
		if turned && s.next != nil {
			src, desk := s.next()
			pub.desk = desk
			return src, nil
		}
		turned = true
		return p.poller, nil
	}}
	r := relay.New(relay.Options{Grace: 5 * time.Second, ExitOnHalt: true}, relay.Observer{}, []relay.Feed{feed})
	pub.result = r.Result
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	go func() { p.done <- r.Run(ctx, pub) }()
	t.Cleanup(func() { // a test that failed leaves it running, and would hide why
		if !p.ended {
			p.kill()
		}
	})
	return p
}

func (n *tallies) observer() outbox.PollerObserver {
	return outbox.PollerObserver{
		Claimed: func(rows int, _ time.Duration) {
			n.claims.Add(1)
			n.rows.Add(int64(rows))
		},
		Settled: func(published, retried, failed, released, parked int) {
			n.published.Add(int64(published))
			n.retried.Add(int64(retried))
			n.failed.Add(int64(failed))
			n.released.Add(int64(released))
			n.parked.Add(int64(parked))
		},
		Lost:      func(k int) { n.lost.Add(int64(k)) },
		Reclaimed: func(k int) { n.reclaimed.Add(int64(k)) },
		State:     func(s event.State, _ event.Condition) { n.state.Store(s) },
		Swept: func(r outbox.SweepResult) {
			n.rounds.Add(1)
			n.opened.Add(int64(r.Opened))
		},
	}
}

// stop is an orderly end.
func (p *process) stop(t *testing.T) {
	t.Helper()
	p.ended = true
	p.cancel()
	if err := <-p.done; err != nil {
		t.Errorf("%s: %v", p.name, err)
	}
	if p.tenancy != nil {
		p.leaseUp()
		<-p.leased
		if err := p.tenancy.Release(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// kill ends a process as SIGKILL would: nothing is written any more, no lease released.
func (p *process) kill() {
	p.ended = true
	p.dead.Store(true)
	p.table.Disconnect()
	p.cancel()
	<-p.done
	if p.tenancy != nil {
		p.leaseUp()
		<-p.leased
	}
}

// until waits, in the bubble, for a condition.
func until(t *testing.T, limit time.Duration, what string, f func() bool) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		synctest.Wait()
		if f() {
			return
		}
		if time.Since(began) > limit {
			t.Fatalf("after %v still not: %s", limit, what)
		}
	}
}

func drained(db *outboxfake.DB) func() bool {
	return func() bool { return db.Count(outboxfake.Pending)+db.Count(outboxfake.Processing) == 0 }
}

func insert(db *outboxfake.DB, key string, n int) (ids []string) {
	for range n {
		end := db.Insert(outboxfake.Row{Key: key})
		ids = append(ids, fmt.Sprintf("r%06d", int(end)/10))
	}
	return ids
}

func jitter(most time.Duration) func() time.Duration {
	return func() time.Duration { return rand.N(most) }
}

func equal(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("delivered %v, want %v", got, want)
	}
}

var errDown = &event.Error{Class: event.Retry, What: "connection reset"}

var errHalt = errors.New("a fault that nobody knows")

func contextOf(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithCancel(t.Context())
}
