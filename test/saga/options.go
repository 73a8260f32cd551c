package saga

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// Options say what the flows do. Shares are between 0 and 1.
type Options struct {
	// Postgres has public.outbox and public.hlc_checkpoint, Mongo has outbox; both of the
	// forze schema. Both servers must stay up.
	Postgres *pgxpool.Pool
	Mongo    *mongo.Database

	Flows     int    // flows beside each other, each with keys of its own; zero means 6
	Keys      int    // of each flow; zero means 4
	MaxEvents int    // a transaction has 1 to so many; zero means 3
	Route     string // empty means orders

	// Transactions ends the run after so many; zero means that the context ends it.
	Transactions int
	// Rate bounds the transactions begun per second over all flows; zero means no bound.
	Rate int

	// RollbackShare of the transactions is rolled back; negative means none, zero 0.1.
	RollbackShare float64
	// MongoShare of the transactions is MongoDB's; zero means half.
	MongoShare float64

	// TwoClocks gives each database a clock of its own, as two services have: MongoDB's
	// wall clock is wrong by Skew, and each step takes in the stamp of the one before it,
	// as a consumer does. Otherwise both share one clock, as in one process.
	TwoClocks bool
	Skew      time.Duration
	// Deaf clocks take nothing in: the fault that stamps are to be judged by.
	Deaf bool

	// Seed makes the random choices repeatable for one flow; zero takes a random one.
	Seed uint64
}

func (o Options) withDefaults() (Options, error) {
	if o.Postgres == nil || o.Mongo == nil {
		return o, errors.New("a saga needs both databases")
	}
	number := func(n *int, standard int) {
		if *n == 0 {
			*n = standard
		}
	}
	number(&o.Flows, 6)
	number(&o.Keys, 4)
	number(&o.MaxEvents, 3)
	if o.Route == "" {
		o.Route = "orders"
	}
	if o.RollbackShare == 0 {
		o.RollbackShare = 0.1
	}
	if o.MongoShare == 0 {
		o.MongoShare = 0.5
	}
	if o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
	return o, nil
}
