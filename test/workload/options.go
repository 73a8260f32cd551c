package workload

import (
	"fmt"
	"math/rand/v2"
)

// Options say how the writers write. Shares are between 0 and 1.
type Options struct {
	DSN    string
	Table  string // may be qualified; it must exist, see CreateForze
	Schema Schema // empty means Forze

	Writers int      // concurrent sessions; zero means 8
	Keys    int      // number of ordering keys; zero means 50
	Routes  []string // a key has one of them; empty means the one route "orders"
	MaxRows int      // a transaction has 1 to so many rows; zero means 50

	// Transactions ends the run after so many were begun; zero means that the
	// context ends it.
	Transactions int
	// Rate bounds the transactions begun per second over all writers; zero means no bound.
	Rate int
	// Padding is added to each payload, in bytes.
	Padding int

	// Negative shares mean none; zero means the default in parentheses.
	RollbackShare  float64 // transactions that are rolled back (0.1)
	SavepointShare float64 // runs of rows inside a savepoint, a third of which is rolled back (0.2)
	CopyShare      float64 // runs of rows written by COPY (0.2)
	MultiRowShare  float64 // runs of rows written by one INSERT with several rows (0.3)
	// DeleteShare of the transactions delete their rows before they commit, as
	// outboxes for Debezium often do; the events count as committed (default 0).
	DeleteShare float64

	// Seed makes the random choices repeatable for one writer; zero takes a random one.
	Seed uint64
}

func (o Options) withDefaults() (Options, error) {
	if o.DSN == "" || o.Table == "" {
		return o, fmt.Errorf("workload needs a DSN and a table, has %d bytes and %q", len(o.DSN), o.Table)
	}
	number := func(n *int, standard int) {
		if *n == 0 {
			*n = standard
		}
	}
	share := func(f *float64, standard float64) {
		if *f == 0 {
			*f = standard
		}
	}
	if o.Schema == "" {
		o.Schema = Forze
	}
	if len(o.Routes) == 0 {
		o.Routes = []string{"orders"}
	}
	number(&o.Writers, 8)
	number(&o.Keys, 50)
	number(&o.MaxRows, 50)
	share(&o.RollbackShare, 0.1)
	share(&o.SavepointShare, 0.2)
	share(&o.CopyShare, 0.2)
	share(&o.MultiRowShare, 0.3)
	if o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
	return o, nil
}
