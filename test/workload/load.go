package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/walrelay/walrelay/test/oracle"
)

// Load is a set of writers and what they have committed. It can run several
// times, with the database restarted in between: keys and their sequences go on.
type Load struct {
	opts Options
	keys []*key
	runs atomic.Uint64 // so that each run draws other numbers

	mu         sync.Mutex
	committed  []oracle.Commit
	unresolved []doubt
	stats      Stats
}

// Stats count what the writers did.
type Stats struct {
	Transactions int // committed
	RolledBack   int // on purpose
	Broken       int // ended by an error of the connection or the server
	InDoubt      int // whose commit was answered by an error, and had to be looked up
}

// New makes a load that has not written anything yet.
func New(t testing.TB, opts Options) *Load {
	t.Helper()
	opts, err := opts.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	l := &Load{opts: opts}
	base := rand.Int64N(1 << 40) // two loads on one database do not share locks
	for i := range opts.Keys {
		l.keys = append(l.keys, &key{
			name:  fmt.Sprintf("key-%x-%d", base, i),
			route: opts.Routes[i%len(opts.Routes)],
			lock:  base<<20 + int64(i),
		})
	}
	return l
}

// Run writes until ctx ends or the transactions are used up, finishes what is
// under way, and returns all that was committed in this run.
func Run(ctx context.Context, t testing.TB, opts Options) []oracle.Commit {
	t.Helper()
	l := New(t, opts)
	l.Run(ctx, t)
	return l.Committed()
}

// Run writes until ctx ends or the transactions are used up, and finishes what
// is under way. A server that is away is waited for. The test fails on an error
// that a restart does not explain. Beside the outbox it makes a table
// <outbox>_ledger, with a row per transaction.
func (l *Load) Run(ctx context.Context, t testing.TB) {
	t.Helper()
	if err := l.createLedger(ctx); err != nil {
		t.Errorf("workload: create %s: %v", l.opts.ledger(), err)
		return
	}
	seed := l.runs.Add(1)
	tickets := Tickets(ctx, l.opts.Transactions, l.opts.Rate, 0)
	var writers sync.WaitGroup
	for i := range l.opts.Writers {
		writers.Go(func() {
			w := &writer{load: l, number: i, rnd: rand.New(rand.NewPCG(l.opts.Seed+seed, uint64(i)))}
			if err := w.run(ctx, tickets); err != nil {
				t.Errorf("workload writer %d: %v", i, err)
			}
		})
	}
	writers.Wait()
	if err := l.resolve(); err != nil {
		t.Errorf("workload: look up commits whose outcome is unknown: %v", err)
	}
}

// Committed lists what was committed so far; complete once Run has returned.
func (l *Load) Committed() []oracle.Commit {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]oracle.Commit(nil), l.committed...)
}

// Stats tells what the writers did so far.
func (l *Load) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stats
}

// draw takes the key's next number. The caller holds the key's advisory lock.
func (l *Load) draw(k *key) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	k.next++
	return k.next
}

func (l *Load) note(rows []row, change func(*Stats)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range rows {
		l.committed = append(l.committed, r.commit())
	}
	change(&l.stats)
}
