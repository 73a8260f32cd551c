package mongo

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/mongoserver"
)

// process is a poller with its own connections and leases, and a broker that takes what it is given.
type process struct {
	h       *house
	db      *Database
	poller  *outbox.Poller
	tenancy *outbox.Tenancy
	ctx     context.Context
	cancel  context.CancelFunc
	ended   sync.WaitGroup
}

// journal is what arrived at the broker, by key, in order.
type journal struct {
	mu   sync.Mutex
	keys map[string][]int
	n    int
}

func (h *house) process(name string, change func(o *Options), j *journal) *process {
	p := &process{h: h}
	var table *Table
	table, p.db = h.another(event.Forze, change)
	opt := outbox.Options{
		Batch: 40, InFlight: 120, Interval: 20 * time.Millisecond, LeaseTTL: 2 * time.Second, Attempts: 1000,
		BackoffMin: 20 * time.Millisecond, BackoffMax: 300 * time.Millisecond, Shards: 4,
	}
	p.ctx, p.cancel = context.WithCancel(h.ctx())
	p.tenancy = outbox.NewTenancy(p.db.Leases(), name, opt, outbox.TenancyObserver{})
	p.poller = outbox.NewPoller([]outbox.Table{table}, p.tenancy, nil, outbox.NewGate(), opt, outbox.Gear{Kind: outbox.GearPoll}, outbox.PollerObserver{})
	p.ended.Go(func() { p.tenancy.Run(p.ctx) })
	p.ended.Go(func() { p.publish(j) })
	return p
}

// publish takes batch after batch. A record arrives, or it is refused and held back with those behind it.
func (p *process) publish(j *journal) {
	r := rand.New(rand.NewPCG(1, 2))
	for {
		batch, err := p.poller.Next(p.ctx)
		switch {
		case errors.Is(err, io.EOF) || p.ctx.Err() != nil:
			return
		case err != nil:
			p.h.t.Errorf("next: %v", err)
			return
		}
		refused := map[string]bool{}
		for i := range batch.Events {
			ev, n := &batch.Events[i], uint64(batch.Spans[i].End.LSN)-1
			key := string(ev.Fields[event.Key])
			if refused[key] || p.poller.Held(ev.Fields[event.Key]) {
				if err := p.poller.Park(p.ctx, nil, event.Ticket{Entry: n}, event.ErrHeld); err != nil {
					p.h.t.Error(err)
				}
				p.poller.Settle(n, nil)
				continue
			}
			if r.Float64() < 0.02 {
				refused[key] = true
				p.poller.Settle(n, &event.Error{Class: event.Retry, What: "not now"})
				continue
			}
			number, _ := strconv.Atoi(string(ev.Fields[event.HLC]))
			j.mu.Lock()
			if p.ctx.Err() == nil { // who is dead reaches no broker
				j.keys[key] = append(j.keys[key], number)
				j.n++
			}
			j.mu.Unlock()
			p.poller.Settle(n, nil)
		}
		batch.Memory.Release()
	}
}

// crash cuts the process off from everything at once.
func (p *process) crash(j *journal) {
	j.mu.Lock()
	p.cancel()
	j.mu.Unlock()
	_ = p.db.Close(p.h.ctx())
}

// Two relays share a collection and records fail at random; one dies with rows in its hands. Every event
// arrives, each key in order; what arrives twice is what the dead one had not written down.
func TestPollersShareACollectionAndKeepEachKeysOrder(t *testing.T) {
	t.Parallel()
	for _, mode := range []ClaimMode{ClaimRow, ClaimLease} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, mongoserver.Shared(t), event.Forze, nil)
			change := func(o *Options) { o.Claim = mode }
			const rows = 900
			h.insert(1, rows, 60)
			j := &journal{keys: map[string][]int{}}
			one, two := h.process("one", change, j), h.process("two", change, j)
			await(t, "a third has arrived", func() bool { j.mu.Lock(); defer j.mu.Unlock(); return j.n > rows/3 })
			if len(one.tenancy.View().Shards.Own) == 0 {
				one, two = two, one // the other had all of them so far
			}
			one.crash(j)
			await(t, "all rows are published", func() bool {
				n, err := h.c.CountDocuments(h.ctx(), bson.D{is("status", op("$ne", published))})
				return n == 0 && err == nil
			})
			two.poller.Finish()
			end, cancel := context.WithTimeout(h.ctx(), 10*time.Second)
			defer cancel()
			if err := two.poller.Close(end); err != nil {
				t.Error(err)
			}
			two.cancel()
			two.ended.Wait()
			_ = one.poller.Close(canceled())
			one.ended.Wait()
			twice := 0
			for key, list := range j.keys {
				seen := map[int]bool{}
				first := slices.DeleteFunc(slices.Clone(list), func(n int) bool { was := seen[n]; seen[n] = true; return was })
				twice += len(list) - len(first)
				if !slices.IsSorted(first) {
					t.Errorf("key %s arrived as %v", key, list)
				}
				if len(first) != rows/60 {
					t.Errorf("key %s: %d of %d events arrived", key, len(first), rows/60)
				}
			}
			if twice > 120+40 {
				t.Errorf("%d events arrived twice", twice)
			}
		})
	}
}

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// await asks until the answer is yes.
func await(t *testing.T, what string, f func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); !f(); <-tick.C {
		if time.Since(began) > 60*time.Second {
			t.Fatalf("%s: not within a minute", what)
		}
	}
}
