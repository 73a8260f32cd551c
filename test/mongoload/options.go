package mongoload

import "math/rand/v2"

// Options say how the writers write. Shares are between 0 and 1.
type Options struct {
	URL                  string
	Database, Collection string // Collection: empty means outbox

	Writers int    // concurrent sessions; zero means 4
	Keys    int    // number of ordering keys; zero means 50
	Route   string // of all events; empty means orders
	MaxRows int    // a transaction has 1 to so many events; zero means 20

	// Transactions ends the run after so many were begun; zero means that the
	// context ends it.
	Transactions int
	// Rate bounds the transactions begun per second over all writers; zero means no bound.
	Rate int

	// Negative shares mean none; zero means the default in parentheses.
	RollbackShare float64 // transactions that are rolled back (0.1)
	// DeleteShare of the transactions delete their documents before they commit, as
	// outboxes for Debezium often do; the events count as committed (0.2).
	DeleteShare float64
	// SingleShare of the transactions insert one by one and not by one command (0.3).
	SingleShare float64

	// Seed makes the random choices repeatable for one writer; zero takes a random one.
	Seed uint64
}

func (o Options) withDefaults() Options {
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
	if o.Collection == "" {
		o.Collection = "outbox"
	}
	if o.Route == "" {
		o.Route = "orders"
	}
	number(&o.Writers, 4)
	number(&o.Keys, 50)
	number(&o.MaxRows, 20)
	share(&o.RollbackShare, 0.1)
	share(&o.DeleteShare, 0.2)
	share(&o.SingleShare, 0.3)
	if o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
	return o
}
