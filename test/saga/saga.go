package saga

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/walrelay/walrelay/hlc"
	stagemongo "github.com/walrelay/walrelay/stage/mongo"
	stagepg "github.com/walrelay/walrelay/stage/postgres"
	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/workload"
)

// Saga is a set of flows and what they have committed. It can run several times: keys
// and their sequences go on.
type Saga struct {
	o        Options
	postgres *stagepg.Outbox
	mongo    *stagemongo.Outbox
	flows    []*flow
	runs     atomic.Uint64 // so that each run draws other numbers

	mu        sync.Mutex
	committed []oracle.Commit
	stats     Stats
}

// Stats count what the flows did.
type Stats struct {
	Postgres, Mongo int // committed transactions of each
	RolledBack      int // on purpose
	Conflicts       int // attempts that MongoDB sent back
	Turns           int // events of a key whose event before was in the other database
}

// New makes a saga that has not written anything yet.
func New(ctx context.Context, t testing.TB, o Options) *Saga {
	t.Helper()
	o, err := o.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	s := &Saga{o: o}
	clock := hlc.New(time.Now, 0)
	node := fmt.Sprintf("saga-%x", rand.Uint32())
	if s.postgres, err = stagepg.Open(ctx, stagepg.Pgx(o.Postgres), stagepg.Options{Clock: clock, Checkpoint: stagepg.Checkpoint{NodeKey: node, Stripes: 64}}); err != nil {
		t.Fatal(err)
	}
	if o.TwoClocks {
		clock = hlc.New(func() time.Time { return time.Now().Add(o.Skew) }, 0)
	}
	if s.mongo, err = stagemongo.Open(ctx, o.Mongo, stagemongo.Options{Clock: clock, Checkpoint: stagemongo.Checkpoint{NodeKey: node}}); err != nil {
		t.Fatal(err)
	}
	for i := range o.Flows {
		f := &flow{saga: s, number: i}
		for k := range o.Keys {
			f.keys = append(f.keys, &key{name: fmt.Sprintf("%s-%d-%d", node, i, k)})
		}
		s.flows = append(s.flows, f)
	}
	return s
}

// Run writes until ctx ends or the transactions are used up, and finishes what is under
// way. The test fails on an error.
func (s *Saga) Run(ctx context.Context, t testing.TB) {
	t.Helper()
	seed := s.o.Seed + s.runs.Add(1)
	tickets := workload.Tickets(ctx, s.o.Transactions, s.o.Rate, s.o.Flows)
	var flows sync.WaitGroup
	for i, f := range s.flows {
		flows.Go(func() {
			f.rnd = rand.New(rand.NewPCG(seed, uint64(i)))
			for range tickets {
				if err := f.step(context.WithoutCancel(ctx)); err != nil {
					t.Errorf("saga, flow %d: %v", i, err)
					return
				}
			}
		})
	}
	flows.Wait()
}

// Committed lists what was committed so far, of each key in its order; complete once Run
// has returned.
func (s *Saga) Committed() []oracle.Commit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]oracle.Commit(nil), s.committed...)
}

// Stats tells what the flows did so far.
func (s *Saga) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

func (s *Saga) count(change func(*Stats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.stats)
}
