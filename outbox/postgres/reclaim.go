package postgres

import (
	"context"
	"strings"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

// Reclaim gives stale claims back. The rows get a due time, now: so that rows that
// were tried are found in the index by having one.
func (t *Table) Reclaim(ctx context.Context, req outbox.Reclaim) (int, error) {
	if !t.claimsRows() || nothing(req.Shards) {
		return 0, nil
	}
	if err := t.l.need("reclaim", colProcessingAt); err != nil {
		return 0, err
	}
	q := &query{}
	typ := t.l.columns[colProcessingAt].typ
	var stale []string
	if req.OlderThan > 0 {
		stale = append(stale, `t."processing_at" < pg_catalog.clock_timestamp() - `+q.arg(interval(req.OlderThan))+"::pg_catalog.interval")
	}
	for _, tenure := range req.Tenures {
		s := `t."processing_at" BETWEEN ` + q.arg(text(tenure.From)) + "::" + typ + " AND " + q.arg(text(tenure.Until)) + "::" + typ
		if req.Shards.Of > 0 {
			s += " AND {shard} % " + q.arg(number(req.Shards.Of)) + "::pg_catalog.int8 = " + q.arg(number(tenure.Shard)) + "::pg_catalog.int8"
		}
		stale = append(stale, s)
	}
	if len(stale) == 0 {
		return 0, nil
	}
	limit := req.Limit
	if limit <= 0 {
		limit = 10_000
	}
	conditions := " AND (" + strings.Join(stale, " OR ") + ")" + q.wanted(t.l, &outbox.Request{Shards: req.Shards, Except: req.Except})
	n := q.arg(number(limit)) + "::pg_catalog.int8"
	set := "{status} = 'pending'" + t.noClaim()
	if t.l.hasColumn(colAttempts) {
		set += `, "attempts" = t."attempts" + 1`
		if t.l.has(event.AvailableAt) {
			set += ", {available} = pg_catalog.clock_timestamp()"
		}
	}
	h := t.l.place()
	var count int64
	err := t.db.transact(ctx, "reclaiming rows of "+t.Relation(), append(t.afterClaims(req.Shards), t.pinned(statement{
		count: &count, args: q.args, formats: q.formats,
		sql: t.sql("WITH RECURSIVE " + routes + ", candidate AS MATERIALIZED (SELECT c.* " +
			t.l.perRoute(h.selected()+`, t."processing_at" AS fence`, "processing", []string{""}, conditions, n) + " LIMIT " + n + "),\n" +
			// The claim may have been renewed or settled since: the fence is compared again under the lock.
			h.locked("candidate u", h.idOrder(), h.same("u"), `t.{status} = 'processing' AND t."processing_at" = u.fence`, "", skipLocked) +
			"UPDATE {table} t SET " + set + " FROM l WHERE " + h.same("l")),
	})...)...)
	return int(count), err
}

// Requeue makes failed rows pending again.
func (t *Table) Requeue(ctx context.Context, ids []string) (int, error) {
	if len(ids) == 0 {
		return 0, nil
	}
	if !t.l.states() {
		return 0, t.l.lacks("has no state failed, so that nothing can be requeued", "see the parked events instead: walrelay parked list")
	}
	var set strings.Builder
	set.WriteString("{status} = 'pending'" + t.noClaim())
	for _, c := range []struct{ column, value string }{
		{t.l.schema.Columns[event.PublishedAt], "NULL"},
		{colLastError, "NULL"},
		{colAttempts, "0"},
		{t.l.schema.Columns[event.AvailableAt], "NULL"},
	} {
		if t.l.hasColumn(c.column) {
			set.WriteString(", " + quote(c.column) + " = " + c.value)
		}
	}
	h := t.l.handle()
	var count int64
	err := t.db.transact(ctx, "requeueing rows of "+t.Relation(), statement{sql: byIndex}, statement{
		count: &count, args: [][]byte{array(ids)},
		sql: t.sql("WITH " + h.byID("pg_catalog.unnest($1::{id_type}[]) u (id)", "t.{status} = 'failed'", "", "") +
			"UPDATE {table} t SET " + set.String() + " FROM l WHERE " + h.same("l")),
	})
	return int(count), err
}
