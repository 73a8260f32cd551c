package main

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/config"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/outbox/postgres"
	"github.com/walrelay/walrelay/slot"
)

// store is where a source's rows are, and what walrelay keeps beside them, whatever the
// database.
type store interface {
	// Tables looks at the tables and gives them.
	Tables(ctx context.Context) ([]outbox.Table, error)
	Leases() outbox.Leases
	Parking() parkingStore
	// Backlog notes what is not published of a table now.
	Backlog(ctx context.Context, t outbox.Table, loose []string) (backlog, error)
	Close(ctx context.Context) error
}

// parkingStore is where a source's events are put aside.
type parkingStore interface {
	outbox.Parking
	Source() string
	Counts(ctx context.Context) (map[outbox.ParkState]int64, error)
}

// backlog is what was not published at some time.
type backlog interface {
	// Left is how much of it is still to be published, but for what waits behind the held keys.
	Left(ctx context.Context, held []string) (int, error)
}

// openStore prepares the tables of a source; nil for one without tables.
func openStore(c *config.Config, name string) (store, error) {
	if c.IsMongo(name) {
		return openMongoStore(c, name)
	}
	sopt, err := c.SlotOptions(name)
	if err != nil {
		return nil, err
	}
	topt, err := c.TableOptions(name)
	if err != nil || len(topt.Tables) == 0 && topt.Bookkeeping == "" {
		return nil, err
	}
	topt.Connect = func(ctx context.Context) (*pgx.Conn, error) { return slot.Connect(ctx, sopt) }
	topt.Classify = func(err error, doing string) error {
		return slot.Classify(err, slot.Scene{Doing: doing, Settled: true})
	}
	return postgresStore{postgres.New(topt)}, nil
}

// postgresStore is the store in a Postgres database.
type postgresStore struct{ *postgres.Database }

func (s postgresStore) Tables(ctx context.Context) ([]outbox.Table, error) {
	tables, err := s.Database.Tables(ctx)
	return tablesOf(tables), err
}

func (s postgresStore) Leases() outbox.Leases { return s.Database.Leases() }

func (s postgresStore) Parking() parkingStore { return s.Database.Parking() }

func (s postgresStore) Backlog(ctx context.Context, t outbox.Table, loose []string) (backlog, error) {
	return t.(*postgres.Table).Backlog(ctx, loose) // Tables gave it
}

func tablesOf[T outbox.Table](tables []T) []outbox.Table {
	all := make([]outbox.Table, len(tables))
	for i, t := range tables {
		all[i] = t
	}
	return all
}
