package order

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/hlc"
	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/mongoserver"
	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
	"github.com/walrelay/walrelay/test/saga"
)

// mixed is a relay for a Postgres and a MongoDB database and one topic; Postgres is
// reached on a way of its own.
type mixed struct {
	near, far *rig.House // Postgres, MongoDB
	way       *way
	k         *kafkaserver.Server
	r         *rig.Relay
	saga      *saga.Saga
}

func newMixed(t *testing.T, partitions int, m mode, order string, o saga.Options) mixed {
	t.Helper()
	pg := pgserver.Shared(t, pgserver.V18)
	var x mixed
	x.near, x.k = newHouse(t, pg, partitions, m, order)
	x.far = rig.NewMongoHouse(t, mongoserver.Shared(t), x.k.Brokers(), x.near.Topic)
	x.way = newWay(t, pg.Port())
	x.near.URL = x.way.through(t, pg.URL(x.near.Database))
	x.near.Second = x.far
	x.near.Init(t)
	pool, err := pgxpool.New(t.Context(), pg.URL(x.near.Database))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	o.Postgres, o.Mongo = pool, x.far.Outbox(t).Database()
	x.saga = saga.New(t.Context(), t, o)
	x.r = x.near.Start(t)
	x.r.WaitReady(soon)
	return x
}

// Postgres's log is half a second behind: what follows in MongoDB overtakes it, where
// nothing is said of stamps.
func TestLogThatLagsBehindMongoKeepsTheOrderOfEachKeyOnlyWhereStampsAreAskedFor(t *testing.T) {
	t.Parallel()
	for _, m := range []mode{byCommit, byStamp, withinKey} {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			x := newMixed(t, 3, m, patient, saga.Options{Transactions: 300})
			x.way.late.Store(int64(500 * time.Millisecond))
			x.saga.Run(t.Context(), t)
			committed := x.saga.Committed()
			records := x.k.ConsumeN(t, len(committed), soon, x.near.Topic)
			j, v := judge(t, records), oracle.Check(committed, records)
			switch {
			case m == byCommit && (v.Inversions == 0 || v.Lost != 0 || v.Duplicates != 0):
				t.Errorf("the naive interleaving: %s", v)
			case m != byCommit && (!v.Clean() || j != judgement{}):
				t.Errorf("%s\n%+v, want each key in the order of its steps and each partition in the order of stamps", v, j)
			}
			t.Logf("%+v, %+v, %d inversions of steps", x.saga.Stats(), j, v.Inversions)
			stop(t, x.r)
		})
	}
}

// The relay is killed with its buffer full: what comes again is a repetition, and the
// first appearances of each key keep their order.
func TestKilledRelayOfBothDatabasesLosesNothingAndKeepsTheOrderOfEachKey(t *testing.T) {
	t.Parallel()
	x := newMixed(t, 3, withinKey, patient, saga.Options{Transactions: 150})
	x.way.late.Store(int64(300 * time.Millisecond))
	for range 3 {
		x.saga.Run(t.Context(), t)
		x.r.Kill()
		x.r = x.near.Start(t)
		x.r.WaitReady(soon)
	}
	committed := x.saga.Committed()
	var v oracle.Verdict
	rig.Eventually(t, "all events", 2*soon, func() error {
		v = oracle.Check(committed, x.k.Consume(t, x.near.Topic))
		if v.Lost > 0 {
			return fmt.Errorf("%d are not there", v.Lost)
		}
		return nil
	})
	if !v.CleanButForDuplicates() {
		t.Error(v)
	}
	t.Logf("%d events, %d duplicates", v.Committed, v.Duplicates)
	stop(t, x.r)
}

// stageDocument writes one event into MongoDB's outbox; its name is its payload.
func stageDocument(t *testing.T, h *rig.House, key, name string, stamp hlc.Stamp) {
	t.Helper()
	doc := append(rig.Document("orders", key, name), bson.E{Key: "hlc", Value: int64(stamp)})
	if _, err := h.Outbox(t).InsertOne(t.Context(), doc); err != nil {
		t.Fatal(err)
	}
}

// MongoDB is asked on a way of its own, to the one node, on which nothing comes back.
func TestNothingGoesPastAMongoThatSaysNothing(t *testing.T) {
	t.Parallel()
	for _, m := range []mode{byStamp, withinKey} {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			pg, server := pgserver.Shared(t, pgserver.V18), mongoserver.Shared(t)
			near, k := newHouse(t, pg, 1, m, patient)
			far := rig.NewMongoHouse(t, server, k.Brokers(), near.Topic)
			way := newWay(t, server.Port(0))
			far.URL = way.through(t, server.NodeURL(0))
			near.Second = far
			near.Init(t)
			r := near.Start(t)
			r.WaitReady(soon)
			conn, stamps := pg.Conn(t, near.Database), clock(0)
			way.hold()
			stageDocument(t, far, "a", "far1", stamps.Now())
			stage(t, conn, "a", "near2", stamps.Now())
			stage(t, conn, "b", "near3", stamps.Now())
			received(t, r, 0, 2)
			looked(t, near, 10)
			if got := names(k.Consume(t, near.Topic)); got != "" {
				t.Errorf("%s went past a source that says nothing", got)
			}
			way.pass()
			arrives(t, k, near, 3, "far1 near2 near3")
			stop(t, r)
		})
	}
}

// A transaction of MongoDB that is open, and has staged before the others, is waited for.
func TestOpenTransactionOfMongoIsWaitedFor(t *testing.T) {
	t.Parallel()
	x := newMixed(t, 1, withinKey, patient, saga.Options{})
	conn, stamps := x.near.PG.Conn(t, x.near.Database), clock(0)
	outbox := x.far.Outbox(t)
	session, err := outbox.Database().Client().StartSession()
	if err != nil {
		t.Fatal(err)
	}
	defer session.EndSession(context.Background())
	if err := session.StartTransaction(); err != nil {
		t.Fatal(err)
	}
	doc := append(rig.Document("orders", "a", "far1"), bson.E{Key: "hlc", Value: int64(stamps.Now())})
	if _, err := outbox.InsertOne(mongo.NewSessionContext(t.Context(), session), doc); err != nil {
		t.Fatal(err)
	}
	stage(t, conn, "a", "near2", stamps.Now())
	received(t, x.r, 0, 1)
	looked(t, x.near, 10)
	if got := names(x.k.Consume(t, x.near.Topic)); got != "" {
		t.Errorf("%s went past an open transaction", got)
	}
	if err := session.CommitTransaction(t.Context()); err != nil {
		t.Fatal(err)
	}
	arrives(t, x.k, x.near, 2, "far1 near2")
	stop(t, x.r)
}
