package order

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	stagemongo "github.com/walrelay/walrelay/stage/mongo"
	stagepg "github.com/walrelay/walrelay/stage/postgres"
	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/mongoserver"
	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
	"github.com/walrelay/walrelay/test/saga"
)

// both is a relay that reads Postgres and MongoDB into one topic, with flows of work that
// go through both.
type both struct {
	near *rig.House
	k    *kafkaserver.Server
	saga *saga.Saga
	r    *rig.Relay
}

func newBoth(t *testing.T, m mode, order string, o saga.Options) both {
	t.Helper()
	var x both
	x.near, x.k = newHouse(t, pgserver.Shared(t, pgserver.V18), 3, m, order)
	far := rig.NewMongoHouse(t, mongoserver.Shared(t), x.k.Brokers(), x.near.Topic)
	x.near.Second = far
	x.near.Init(t)
	x.near.Exec(t, stagepg.Checkpoint{}.DDL())
	pool, err := pgxpool.New(t.Context(), x.near.PG.URL(x.near.Database))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	o.Postgres, o.Mongo = pool, far.Outbox(t).Database()
	if err := stagemongo.Init(t.Context(), o.Mongo, stagemongo.Options{}); err != nil {
		t.Fatal(err)
	}
	x.saga = saga.New(t.Context(), t, o)
	x.r = x.near.Start(t)
	x.r.WaitReady(soon)
	return x
}

// Each step of a flow is the effect of the one before, in the other database as often as not.
func TestPostgresAndMongoInOneTopicKeepTheOrderOfEachKeyWhereStampsAreAskedFor(t *testing.T) {
	t.Parallel()
	for _, m := range []mode{byCommit, byStamp, withinKey} {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			x := newBoth(t, m, patient, saga.Options{Flows: 4, Transactions: 300, TwoClocks: true, Skew: -20 * time.Millisecond})
			x.saga.Run(t.Context(), t)
			committed := x.saga.Committed()
			records := x.k.ConsumeN(t, len(committed), 2*soon, x.near.Topic)
			j := judge(t, records)
			v := oracle.Check(committed, records)
			switch {
			case x.saga.Stats().Turns < 50:
				t.Errorf("%d turns between the databases: the test tests nothing", x.saga.Stats().Turns)
			case v.Lost > 0 || v.Duplicates > 0 || j.late > 0:
				t.Errorf("%v, %+v", v, j)
			case m != byCommit && (!v.Clean() || j.inversionsOfKey > 0):
				t.Errorf("%v, %+v: want the order of each key", v, j)
			case m == byStamp && j.inversions > 0:
				t.Errorf("%+v, want each partition in the order of stamps", j)
			}
			t.Logf("%v, %+v, %+v", v, j, x.saga.Stats())
			stop(t, x.r)
		})
	}
}
