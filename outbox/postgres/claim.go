package postgres

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

// widest is how many times the limit a claim looks at when others hold the rows at the front.
const widest = 16

// mostRoom bounds the room for rows that is made in advance.
const mostRoom = 10_000

// Claim takes rows, in table order.
func (t *Table) Claim(ctx context.Context, req outbox.Request) (*outbox.Claim, error) {
	if req.Limit <= 0 || nothing(req.Shards) || req.Only != nil && len(req.Only) == 0 {
		return &outbox.Claim{}, nil
	}
	if t.db.o.AfterPublish == Keep {
		return nil, t.l.lacks("is read by claims, but published rows are kept unmarked: each would be published for ever",
			"set after_publish to mark or delete")
	}
	switch {
	case t.claimsRows():
		if err := t.l.need("claim: row", colProcessingAt); err != nil {
			return nil, err
		}
		return t.claimRows(ctx, &req)
	case t.l.schema.Preset == event.Debezium && t.db.o.Claim == ClaimRow:
		return t.claimOpen(ctx, &req)
	}
	return t.claimLease(ctx, &req)
}

// pinned puts the planner's settings before a statement that walks the claim index.
// A table without one is better scanned.
func (t *Table) pinned(s ...statement) []statement {
	if !t.l.claimIndex() {
		return s
	}
	pins := []statement{{sql: byIndex}}
	if t.l.orderIndex() {
		pins = append(pins, statement{sql: "select pg_catalog.set_config('enable_incremental_sort', 'off', true)"})
	}
	return append(pins, s...)
}

// orderIndex says whether the table has an index that gives pending rows in table order
// throughout, so that nothing at all is to be sorted.
func (l *layout) orderIndex() bool {
	return l.indexed(append([]string{l.schema.Columns[event.Route], l.schema.Columns[event.Status], l.schema.Columns[event.AvailableAt]}, l.orderNames()...)...)
}

// claimIndex says whether the table has an index that claims can walk.
func (l *layout) claimIndex() bool {
	return l.states() && l.has(event.AvailableAt) &&
		l.indexed(l.schema.Columns[event.Route], l.schema.Columns[event.Status], l.schema.Columns[event.AvailableAt])
}

// collect appends rows to the claim, at most limit.
func (t *Table) collect(claim *outbox.Claim, limit int, room []outbox.Row) func([][]byte) error {
	var a arena
	claim.Rows = room[:0]
	return func(v [][]byte) error {
		if cap(claim.Rows) == 0 {
			claim.Rows = make([]outbox.Row, 0, min(limit, mostRoom))
		}
		claim.Rows = append(claim.Rows, outbox.Row{})
		return t.shape.read(v, &a, &claim.Rows[len(claim.Rows)-1])
	}
}

// selection selects whole rows that a claim wants, in table order, and writes nothing.
func (t *Table) selection(req *outbox.Request, locking string, row func([][]byte) error) statement {
	q := &query{}
	limit := q.arg(number(req.Limit)) + "::pg_catalog.int8"
	if !t.l.states() || req.Only != nil {
		wanted := q.wanted(t.l, req)
		return statement{sql: t.sql("SELECT " + t.shape.list + " FROM {table} t WHERE " + t.l.isPending() + " AND " + t.l.isDue() + wanted +
			" ORDER BY " + t.l.order() + " LIMIT " + limit + locking), args: q.args, formats: q.formats, row: row}
	}
	h, o := t.l.place(), t.l.ranks()
	columns := h.selected() + ", " + o.selected()
	return statement{sql: t.sql("WITH RECURSIVE " + routes + ", candidate AS MATERIALIZED (SELECT c.* " +
		t.l.perRoute(columns, "pending", t.l.dueKinds(), q.wanted(t.l, withoutHeads(req)), limit) + q.headRows(t.l, req, columns) + "),\n" +
		"chosen AS (SELECT * FROM candidate c ORDER BY " + o.of("c") + " LIMIT " + limit + ")\n" +
		"SELECT " + t.shape.list + " FROM chosen c JOIN {table} t ON " + h.same("c") + " ORDER BY " + o.of("c")), args: q.args, formats: q.formats, row: row}
}

// ranks are the columns of the table order, under names of their own: o0, o1, …
type ranks []string

func (l *layout) ranks() ranks { return l.orderColumns() }

func (r ranks) selected() string {
	list := make([]string, len(r))
	for i := range r {
		list[i] = r[i] + " AS o" + strconv.Itoa(i)
	}
	return strings.Join(list, ", ")
}

func (r ranks) of(alias string) string {
	list := make([]string, len(r))
	for i := range r {
		list[i] = alias + ".o" + strconv.Itoa(i)
	}
	return strings.Join(list, ", ")
}

// claimRows writes processing. Where others hold locks on the rows at the front it
// looks further: an empty claim means that there is nothing to do, not that somebody was quicker.
func (t *Table) claimRows(ctx context.Context, req *outbox.Request) (*outbox.Claim, error) {
	claim, err := t.tryClaim(ctx, req, req.Limit)
	if err == nil && len(claim.Rows) == 0 && req.Only == nil {
		claim, err = t.tryClaim(ctx, req, widest*req.Limit)
	}
	return claim, err
}

// numbered is a row with its number in table order.
type numbered struct {
	n   int
	row outbox.Row
}

func byNumber(a, b numbered) int { return a.n - b.n }

func (t *Table) tryClaim(ctx context.Context, req *outbox.Request, look int) (*outbox.Claim, error) {
	var (
		rows  []numbered
		a     arena
		claim = &outbox.Claim{}
	)
	s := t.claimStatement(req, look)
	s.row = func(v [][]byte) (err error) {
		if rows == nil {
			rows = make([]numbered, 0, min(req.Limit, mostRoom))
		}
		r := numbered{}
		if r.n, err = strconv.Atoi(string(v[0])); err != nil {
			return err
		}
		if claim.Fence == "" {
			claim.Fence = outbox.Fence(v[1])
		}
		err = t.shape.read(v[2:], &a, &r.row)
		rows = append(rows, r)
		return err
	}
	if err := t.db.transact(ctx, "claiming rows of "+t.Relation(), append(t.inClaim(req.Shards), t.pinned(s)...)...); err != nil {
		return nil, err
	}
	if !slices.IsSortedFunc(rows, byNumber) { // RETURNING need not keep the order
		slices.SortFunc(rows, byNumber)
	}
	claim.Rows = make([]outbox.Row, len(rows))
	for i := range rows {
		claim.Rows[i] = rows[i].row
	}
	return claim, nil
}

// claimStatement looks at the first rows of each route and at those whose turn it is, locks
// those that nobody else has locked in table order up to the limit, and writes the claim into them. It answers for each its
// number in table order, the fence, and the row.
func (t *Table) claimStatement(req *outbox.Request, look int) statement {
	q := &query{}
	h, o := t.l.place(), t.l.ranks()
	columns, limit := h.selected()+", "+o.selected(), q.arg(number(req.Limit))+"::pg_catalog.int8"
	var candidates string
	if req.Only != nil {
		candidates = "SELECT " + columns + " FROM {table} t WHERE " + t.l.isPending() + " AND " + t.l.isDue() + q.wanted(t.l, req)
	} else {
		candidates = "SELECT c.* " + t.l.perRoute(columns, "pending", t.l.dueKinds(), q.wanted(t.l, withoutHeads(req)), q.arg(number(look))+"::pg_catalog.int8") +
			q.headRows(t.l, req, columns)
	}
	return statement{args: q.args, formats: q.formats, sql: t.sql(`WITH RECURSIVE ` + routes + `, candidate AS MATERIALIZED (` + candidates + "),\n" +
		h.locked("candidate u", o.of("u"), h.same("u"), t.l.isPending()+` AND `+t.l.isDue(), "", skipLocked) + `,
numbered AS MATERIALIZED (SELECT l.*, pg_catalog.row_number() OVER () AS n FROM (SELECT * FROM l` + q.stillHeld(t, req.Shards) + ` LIMIT ` + limit + `) l)
UPDATE {table} t SET {status} = 'processing', "processing_at" = (SELECT pg_catalog.clock_timestamp())
 FROM numbered l WHERE ` + h.same("l") + ` RETURNING l.n, t."processing_at", ` + t.shape.list)}
}
