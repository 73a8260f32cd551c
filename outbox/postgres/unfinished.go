package postgres

import (
	"context"
	"strings"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

// Unfinished lists rows that hold their key. Rows that were tried have a due time:
// a retry and a reclaim give them one. So they are found in the index without looking at those that wait for
// their first attempt, except at those that were inserted with one.
func (t *Table) Unfinished(ctx context.Context, shards outbox.Shards, limit int) (rows []outbox.Unfinished, more bool, err error) {
	if !t.l.states() || nothing(shards) {
		return nil, false, nil
	}
	q := &query{}
	mine := q.shards(shards)
	n := q.arg(number(limit+1)) + "::pg_catalog.int8"
	o := t.l.ranks()
	columns := "t.{id} AS i, {key} AS k, t.{route} AS r, t.{status} AS s, " + t.l.isDue() + " AS due, " + o.selected()
	parts := []string{"SELECT c.* " + t.l.perRoute(columns, "processing", []string{""}, mine, n)}
	if t.l.hasColumn(colAttempts) && t.l.has(event.AvailableAt) {
		parts = append(parts, "SELECT c.* "+t.l.perRoute(columns, "pending", []string{` AND t.{available} IS NOT NULL AND t."attempts" > 0`}, mine, n))
	}
	var before []statement
	if t.claimsRows() {
		before = t.afterClaims(shards)
	}
	err = t.db.transact(ctx, "listing unfinished rows of "+t.Relation(), append(before, t.pinned(statement{
		args: q.args,
		sql: t.sql("WITH RECURSIVE " + routes + "\nSELECT u.i, u.k, u.r, u.s, u.due FROM (" + strings.Join(parts, "\nUNION ALL\n") + ") u ORDER BY " +
			o.of("u") + " LIMIT " + n),
		row: func(v [][]byte) error {
			rows = append(rows, outbox.Unfinished{
				ID: string(v[0]), Key: string(v[1]), Route: string(v[2]), Processing: string(v[3]) == "processing", Due: string(v[4]) == "t",
			})
			return nil
		},
	})...)...)
	if len(rows) > limit {
		rows, more = rows[:limit], true
	}
	return rows, more, err
}
