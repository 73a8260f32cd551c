package mongoload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/workload"
)

// finishWithin bounds a transaction with the elections that it lives through.
const finishWithin = 90 * time.Second

// Load is a set of writers. It can run several times: keys and their numbers go on.
type Load struct {
	opts Options
	name string // begins the keys, so that two loads do not share any
	runs uint64

	outbox, keys, ledger *mongo.Collection
	locks                []sync.Mutex // one per key: conflicts are for elections, not for every transaction

	mu    sync.Mutex
	stats Stats
}

// Stats count what the writers did.
type Stats struct {
	Transactions int // answered as committed
	RolledBack   int // on purpose
	Retried      int // attempts that an election, a crash or a conflict ended
}

// New makes a load that has not written anything yet; its collections beside the
// outbox, <outbox>_keys and <outbox>_ledger, are there afterwards.
func New(t testing.TB, opts Options) *Load {
	t.Helper()
	opts = opts.withDefaults()
	client, err := mongo.Connect(options.Client().ApplyURI(opts.URL).
		SetConnectTimeout(2 * time.Second).SetHeartbeatInterval(500 * time.Millisecond).
		SetWriteConcern(writeconcern.Majority()).SetReadConcern(readconcern.Majority()).SetReadPreference(readpref.Primary()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = client.Disconnect(ctx)
	})
	db := client.Database(opts.Database)
	l := &Load{
		opts: opts, name: fmt.Sprintf("key-%x", rand.Uint32()),
		outbox: db.Collection(opts.Collection), keys: db.Collection(opts.Collection + "_keys"), ledger: db.Collection(opts.Collection + "_ledger"),
		locks: make([]sync.Mutex, opts.Keys),
	}
	ctx, cancel := context.WithTimeout(context.Background(), finishWithin)
	defer cancel()
	if _, err := l.ledger.InsertOne(ctx, bson.D{{Key: "_id", Value: l.name}}); err != nil {
		t.Fatal(err)
	}
	var all []bson.D
	for i := range opts.Keys {
		all = append(all, bson.D{{Key: "_id", Value: l.key(i)}, {Key: "last", Value: int64(0)}})
	}
	if _, err := l.keys.InsertMany(ctx, all); err != nil {
		t.Fatal(err)
	}
	return l
}

// Run writes until ctx ends or the transactions are used up, and finishes what is
// under way. A set without a primary is waited for. The test fails on an error that
// an election does not explain.
func (l *Load) Run(ctx context.Context, t testing.TB) {
	t.Helper()
	l.runs++
	tickets := workload.Tickets(ctx, l.opts.Transactions, l.opts.Rate, 0)
	var writers sync.WaitGroup
	for i := range l.opts.Writers {
		rnd := rand.New(rand.NewPCG(l.opts.Seed+l.runs, uint64(i)))
		writers.Go(func() {
			for range tickets {
				// The end of the run must not cut a transaction short.
				one, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishWithin)
				err := l.transaction(one, rnd)
				cancel()
				if err != nil {
					t.Errorf("mongoload writer %d: %v", i, err)
					return
				}
			}
		})
	}
	writers.Wait()
}

// Committed lists what was committed so far; complete once Run has returned. An
// answer that got lost leaves no doubt: the ledger knows.
func (l *Load) Committed(t testing.TB) (all []oracle.Commit) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), finishWithin)
	defer cancel()
	var entries []entry
	found, err := l.ledger.Find(ctx, bson.D{{Key: "load", Value: l.name}})
	if err == nil {
		err = found.All(ctx, &entries)
	}
	if err != nil {
		t.Fatalf("mongoload: read the ledger: %v", err)
	}
	for _, e := range entries {
		for _, w := range e.Events {
			all = append(all, oracle.Commit{EventID: w.ID, Route: l.opts.Route, Key: w.Key, Seq: w.Seq, Value: []byte(w.value())})
		}
	}
	if stats := l.Stats(); len(entries) < stats.Transactions {
		t.Errorf("mongoload: %d transactions were answered as committed, and the ledger holds %d", stats.Transactions, len(entries))
	}
	return all
}

// Stats tells what the writers did so far.
func (l *Load) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stats
}

func (l *Load) count(change func(*Stats)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.stats)
}

func (l *Load) key(i int) string { return fmt.Sprintf("%s-%d", l.name, i) }

var errRollback = errors.New("rolled back on purpose")
