package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/event"
)

// Name is a table's name as the catalog has it.
type Name struct{ Schema, Name string }

// SQL is the quoted name.
func (n Name) SQL() string { return pgx.Identifier{n.Schema, n.Name}.Sanitize() }

func (n Name) String() string { return n.Schema + "." + n.Name }

// AfterPublish says what happens to a row once its event is published.
type AfterPublish string

// The choices.
const (
	Keep   AfterPublish = "keep" // nothing is written; only the log path can do without
	MarkIt AfterPublish = "mark"
	Delete AfterPublish = "delete"
)

// ClaimMode says what stands for a claim while a row is under way.
type ClaimMode string

// The modes.
const (
	// ClaimRow writes processing into the row (or, in a preset without states, keeps
	// its lock until it is deleted): safe beside foreign pollers.
	ClaimRow ClaimMode = "row"
	// ClaimLease writes nothing: the lease of the shard is the claim.
	ClaimLease ClaimMode = "lease"
)

// Options of a source's tables.
type Options struct {
	// Source is the name in the configuration; Owner the key of walrelay's own rows
	// (it must differ between two relays on one database).
	Source, Owner string
	// Connect opens an ordinary connection. A pooler in transaction mode may stand behind it.
	Connect func(ctx context.Context) (*pgx.Conn, error)
	// Classify gives an error of the server its class; doing says what was tried.
	Classify func(err error, doing string) error

	Tables       []Name
	Schema       event.Schema
	ExtraColumns []string
	AfterPublish AfterPublish
	Claim        ClaimMode
	// Bookkeeping is the name of walrelay's own schema; empty: none.
	Bookkeeping string
	// ParkedBudget bounds the events that are kept whole in the parking store (10 000).
	ParkedBudget int
}
