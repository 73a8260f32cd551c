package postgres

import (
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/inbox"
)

// Options of an inbox in Postgres.
type Options struct {
	// Table of the marks; public.inbox unless given.
	Table pgx.Identifier
	// Runs is how often Process runs a transaction that Postgres gives up for a
	// serialization failure or a deadlock, the first run included; 5 when 0.
	Runs int
	// Isolation of the transactions of Process; the database's default when empty,
	// which is read committed and is enough for the inbox itself.
	Isolation pgx.TxIsoLevel
}

// Inbox reads the records of one route once each. It may be used by several
// goroutines.
type Inbox struct {
	*inbox.Inbox
	opts Options
	sql  statements
}

// New joins an inbox with a table. It does not look whether the table is there.
func New(in *inbox.Inbox, opts Options) (*Inbox, error) {
	if slices.Contains(opts.Table, "") {
		return nil, fmt.Errorf("table name %q of the inbox has an empty part", opts.Table)
	}
	switch {
	case opts.Runs < 0:
		return nil, fmt.Errorf("%d runs of a transaction: at least one is needed", opts.Runs)
	case opts.Runs == 0:
		opts.Runs = inbox.DefaultRuns
	}
	if _, known := sqlIsolation[opts.Isolation]; !known {
		return nil, fmt.Errorf("isolation level %q is none of Postgres", opts.Isolation)
	}
	return &Inbox{Inbox: in, opts: opts, sql: newStatements(opts.Table)}, nil
}
