package postgres

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/hlc"
	"github.com/walrelay/walrelay/stage"
)

// DefaultNodeKey is the node key of applications that set none.
const DefaultNodeKey = stage.DefaultNodeKey

// Checkpoint keeps the greatest stamp that was committed, so that no later process
// issues a lower one (package hlc has the contract). Many nodes may share a table.
type Checkpoint struct {
	// Table is public.hlc_checkpoint unless given.
	Table pgx.Identifier
	// NodeKey names the row that this node raises; [DefaultNodeKey] unless given.
	NodeKey string
	// Stripes spreads the marks of a node over so many rows, picked by the database
	// session, so that sessions do not wait for each other's commits at one row. The
	// rows are node_key/0, node_key/1 and so on. 0 and 1 mean one row, node_key itself.
	Stripes int
}

func (c Checkpoint) table() string {
	if len(c.Table) == 0 {
		return pgx.Identifier{"public", "hlc_checkpoint"}.Sanitize()
	}
	return c.Table.Sanitize()
}

// DDL is the statement that makes the table; walrelay init makes it too.
func (c Checkpoint) DDL() string {
	return "CREATE TABLE IF NOT EXISTS " + c.table() + " (\n\tnode_key text PRIMARY KEY,\n\thlc bigint NOT NULL\n)"
}

// Load answers the greatest mark over all node keys; found is false when the table
// is empty. A missing table, one whose marks are not bigint, or a mark that is no
// stamp is an [event.Error] that says what to do, never "no mark": to start without
// it would be to stamp below what is already out.
func (c Checkpoint) Load(ctx context.Context, db DB) (mark hlc.Stamp, found bool, err error) {
	// As text, and with its type: a numeric or text column compares, or rounds, otherwise.
	var top, kind *string
	var rows, lowest, nulls *string
	err = db.rows(ctx, `select max(hlc)::text, pg_typeof(max(hlc))::text, count(*)::text, min(hlc)::text, count(*) filter (where hlc is null)::text from `+c.table(),
		nil, func(scan func(...any) error) error { return scan(&top, &kind, &rows, &lowest, &nulls) })
	switch {
	case err != nil:
		return 0, false, c.classify(err)
	case kind == nil || *kind != "bigint":
		return 0, false, c.misfit(fmt.Sprintf("column hlc of %s is of type %s, and marks are bigint", c.table(), deref(kind)), nil)
	case deref(nulls) != "0":
		return 0, false, c.misfit(fmt.Sprintf("%s of %s marks in %s are NULL", deref(nulls), deref(rows), c.table()), nil)
	case top == nil:
		return 0, false, nil
	}
	if n, err := strconv.ParseInt(deref(lowest), 10, 64); err != nil || n < 0 {
		return 0, false, c.misfit(fmt.Sprintf("mark %s in %s is no stamp", deref(lowest), c.table()), err)
	}
	n, err := strconv.ParseInt(*top, 10, 64)
	if err != nil {
		return 0, false, c.misfit(fmt.Sprintf("mark %s in %s is no stamp", *top, c.table()), err)
	}
	return hlc.Stamp(n), true, nil
}

// Advance raises the node's mark, never lowers it, whoever else is writing. Give
// it the transaction of the rows that the mark covers, as its last statement: the
// row stays locked until the end. [Outbox.Flush] does so by itself.
func (c Checkpoint) Advance(ctx context.Context, db DB, mark hlc.Stamp) error {
	if err := db.transaction(); err != nil {
		return fmt.Errorf("advancing the checkpoint: %w", err)
	}
	err := db.rows(ctx, c.upsert("$1", "$2"), []any{c.nodeKey(), packed(mark)}, func(func(...any) error) error { return nil })
	if err != nil {
		return c.classify(err)
	}
	return nil
}

func (c Checkpoint) nodeKey() string {
	if c.NodeKey == "" {
		return DefaultNodeKey
	}
	return c.NodeKey
}

// upsert is the statement that raises the mark; the parameters are text. The
// server compares with the row that is there when it holds the row's lock, so
// whichever writer comes last, the greater mark stays.
func (c Checkpoint) upsert(key, mark string) string {
	key += "::text"
	if c.Stripes > 1 {
		// One stripe for all of a session's transactions, so that a second flush in one
		// never asks for a second lock.
		key += fmt.Sprintf(" || '/' || (pg_backend_pid() %% %d)", c.Stripes)
	}
	return `insert into ` + c.table() + ` as c (node_key, hlc) values (` + key + `, ` + mark + `::text::bigint)
 on conflict (node_key) do update set hlc = greatest(c.hlc, excluded.hlc)`
}

// packed is a stamp as a parameter.
func packed(s hlc.Stamp) string { return strconv.FormatUint(uint64(s), 10) }

// classify tells a table that is not there, or is another, from a server that
// cannot be asked.
func (c Checkpoint) classify(err error) error {
	switch sqlState(err) {
	case "42P01", "3F000": // undefined_table, invalid_schema_name
		return &event.Error{
			Class: event.Halt, Fault: event.FaultPrecondition, What: "the checkpoint table " + c.table() + " does not exist",
			Remedy: "create it, as walrelay init does: " + c.DDL(), Cause: err,
		}
	case "42703", "42883", "42804", "42P10", "22P02", "42846":
		// undefined column, function, wrong type, no unique constraint, not a number, no cast
		return c.misfit("the checkpoint table "+c.table()+" has another shape than it ought to", err)
	}
	return fmt.Errorf("checkpoint %s: %w", c.table(), err)
}

func (c Checkpoint) misfit(what string, cause error) error {
	return &event.Error{
		Class: event.Halt, Fault: event.FaultPrecondition, What: what,
		Remedy: "do not empty the table, or stamps begin below those that are out: find the greatest stamp that was written (max(hlc) of the outbox, or the newest records' forze_hlc), " +
			"make the table anew with " + c.DDL() + " and insert that as its mark",
		Cause: cause,
	}
}

func deref(s *string) string {
	if s == nil {
		return "NULL"
	}
	return *s
}
