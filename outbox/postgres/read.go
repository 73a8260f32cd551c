package postgres

import (
	"context"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

// Read gives published rows again, oldest first by the time of publishing.
func (t *Table) Read(ctx context.Context, f outbox.Filter) (*outbox.Claim, error) {
	if !t.l.has(event.PublishedAt) {
		return nil, t.l.lacks("does not say what was published when: published rows are deleted or look like any other",
			"consume the topic again from an earlier offset")
	}
	if f.Limit <= 0 {
		f.Limit = 500
	}
	q := &query{}
	where := "t.{published} IS NOT NULL"
	if t.l.states() {
		where = "t.{status} = 'published' AND " + where
	}
	typ := "::" + t.l.columns[t.l.schema.Columns[event.PublishedAt]].typ
	if f.EventID != "" {
		where += " AND t.{event} = " + q.arg(text(f.EventID)) + "::" + t.l.columns[t.l.schema.Columns[event.EventID]].typ
	}
	if f.Route != "" {
		where += " AND t.{route} = " + q.arg(text(f.Route)) + "::" + t.l.columns[t.l.schema.Columns[event.Route]].typ
	}
	if f.Since != "" {
		where += " AND t.{published} >= " + q.arg(text(f.Since)) + typ
	}
	if f.Until != "" {
		where += " AND t.{published} < " + q.arg(text(f.Until)) + typ
	}
	if f.After != "" {
		where += " AND (t.{published}, t.{id}) > (SELECT a.{published}, a.{id} FROM {table} a WHERE a.{id} = " + q.arg(text(f.After)) + "::{id_type})"
	}
	limit := q.arg(number(f.Limit)) + "::pg_catalog.int8"
	claim := &outbox.Claim{}
	err := t.db.transact(ctx, "reading published rows of "+t.Relation(), statement{
		args: q.args, row: t.collect(claim, f.Limit, nil),
		sql: t.sql("SELECT " + t.shape.list + " FROM {table} t WHERE " + where + " ORDER BY t.{published}, t.{id} LIMIT " + limit),
	})
	return claim, err
}
