package postgres

import (
	"context"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

// soleRest is how many claims ask for the rows of all routes after one that asked
// for a single route in vain.
const soleRest = 16

// sole remembers the route that had all rows of the last full claim. It is a guess at
// which form of the statement costs least, and nothing rests on it.
type sole struct {
	route string
	known bool
	rest  int
}

// soleRoute is the route to ask for alone.
func (t *Table) soleRoute(req *outbox.Request) (route string, ok bool) {
	if req.Only != nil || !t.l.claimIndex() || !t.l.orderIndex() {
		return "", false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sole.route, t.sole.known
}

// soleFailed: rows were found only when all routes were asked for.
func (t *Table) soleFailed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sole = sole{rest: soleRest}
}

// learnSole looks at a claim of all routes.
func (t *Table) learnSole(req *outbox.Request, rows []outbox.Row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sole.rest > 0 {
		t.sole.rest--
		return
	}
	t.sole = sole{}
	if len(rows) < req.Limit || rows[0].Event.Fields[event.Route] == nil {
		return
	}
	for i := range rows {
		if rows[i].Route != rows[0].Route {
			return
		}
	}
	t.sole = sole{route: rows[0].Route, known: true}
}

// claimLease selects the rows of a claim that writes nothing.
func (t *Table) claimLease(ctx context.Context, req *outbox.Request) (*outbox.Claim, error) {
	doing := "claiming rows of " + t.Relation()
	route, tried := t.soleRoute(req)
	if tried {
		claim := &outbox.Claim{}
		err := t.db.transact(ctx, doing, t.pinned(t.soleSelection(req, route, t.collect(claim, req.Limit, req.Room)))...)
		if err != nil || len(claim.Rows) > 0 {
			return claim, err
		}
	}
	claim := &outbox.Claim{}
	err := t.db.transact(ctx, doing, t.pinned(t.selection(req, "", t.collect(claim, req.Limit, req.Room)))...)
	switch {
	case err != nil || req.Only != nil:
	case tried && len(claim.Rows) > 0:
		t.soleFailed()
	default:
		t.learnSole(req, claim.Rows)
	}
	return claim, err
}

// soleSelection is what selection gives when one route has all rows that are due, and
// none of them has a due time; otherwise it gives nothing. Its rows come from the index in
// table order: nothing is sorted, and no row is looked up twice.
func (t *Table) soleSelection(req *outbox.Request, route string, row func([][]byte) error) statement {
	q := &query{}
	wanted := q.wanted(t.l, req)
	limit := q.arg(number(req.Limit)) + "::pg_catalog.int8"
	mine := q.arg(text(route)) + "::" + t.l.columns[t.l.schema.Columns[event.Route]].typ
	kinds := t.l.dueKinds()
	others := t.l.perRoute("1", "pending", kinds[:1], " AND routes.r IS DISTINCT FROM "+mine, "1")
	timed := t.l.perRoute("1", "pending", kinds[1:], "", "1")
	return statement{
		args: q.args, formats: q.formats, row: row,
		sql: t.sql("WITH RECURSIVE " + routes + "\nSELECT " + t.shape.list + " FROM {table} t WHERE t.{route} = " + mine + " AND t.{status} = 'pending'" + kinds[0] +
			wanted + "\n AND (SELECT NOT EXISTS (SELECT " + others + ") AND NOT EXISTS (SELECT " + timed + "))\n ORDER BY t.{available}, " + t.l.order() + " LIMIT " + limit),
	}
}
