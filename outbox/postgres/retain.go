package postgres

import (
	"context"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

// Retain deletes published rows that are older than keep, or drops whole partitions of them.
func (t *Table) Retain(ctx context.Context, keep time.Duration, batch int) (outbox.Retained, error) {
	var r outbox.Retained
	if keep <= 0 || !t.l.has(event.PublishedAt) || t.l.schema.Preset == event.Debezium {
		return r, nil // for ever; or published rows are gone already
	}
	if t.l.rangeColumn != "" && t.l.owned {
		dropped, err := t.dropPartitions(ctx, keep)
		return outbox.Retained{Partitions: dropped}, err
	}
	if batch <= 0 {
		batch = 10_000
	}
	q := &query{}
	h := t.l.place()
	n := q.arg(number(batch)) + "::pg_catalog.int8"
	old := "x.published < pg_catalog.clock_timestamp() - " + q.arg(interval(keep)) + "::pg_catalog.interval"
	columns := h.selected() + ", t.{published} AS published"
	var head, candidates string
	if t.l.claimIndex() {
		// Looked at are the first rows of each route in table order. Where these are younger,
		// nothing is deleted, though an older row may stand behind them: it will be,
		// when they are. So a look costs a batch, never a scan of all published rows.
		head = "WITH RECURSIVE " + routes + ",\n"
		kinds := []string{" AND t.{available} IS NULL", " AND t.{available} IS NOT NULL"}
		candidates = "SELECT x.* FROM (SELECT c.* " + t.l.perRoute(columns, "published", kinds, "", n) + ") x WHERE " + old + " LIMIT " + n
	} else {
		head = "WITH "
		is := "t.{published} IS NOT NULL"
		if t.l.states() {
			is = "t.{status} = 'published'"
		}
		candidates = "SELECT x.* FROM (SELECT " + columns + " FROM {table} t WHERE " + is + ") x WHERE " + old + " ORDER BY x.published LIMIT " + n
	}
	err := t.db.transact(ctx, "deleting old rows of "+t.Relation(), t.pinned(statement{
		count: &r.Rows, args: q.args,
		sql: t.sql(head + "candidate AS MATERIALIZED (" + candidates + "),\n" +
			h.locked("candidate u", h.idOrder(), h.same("u"), "NOT ("+t.l.isPending()+") AND t.{published} = u.published", "", skipLocked) +
			"DELETE FROM {table} t USING l WHERE " + h.same("l")),
	})...)
	return r, err
}
