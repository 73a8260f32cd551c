package postgres

import (
	"context"
	"strconv"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

// sample is how many rows at the front of each stretch of the index are looked at
// for the oldest one: the stretch is in table order, which is nearly that of age.
const sample = 100

// Figures reads the table's gauges. Each count stops at outbox.CountLimit.
func (t *Table) Figures(ctx context.Context) (outbox.Figures, error) {
	var f outbox.Figures
	work := []statement{{
		sql: `SELECT coalesce(pg_catalog.sum(s.n_dead_tup), 0)::pg_catalog.int8 FROM pg_catalog.pg_stat_all_tables s
 WHERE s.relid = $1::pg_catalog.oid OR s.relid IN (SELECT p.relid FROM pg_catalog.pg_partition_tree($1::pg_catalog.oid::pg_catalog.regclass) p)`,
		args: [][]byte{text(t.l.oid)}, row: into(&f.DeadTuples),
	}}
	if t.l.states() {
		work = append(t.pinned(work...), t.count("pending", "", &f.Pending), t.count("processing", "", &f.Processing), t.count("failed", "", &f.Failed))
		if t.l.hasColumn(colAttempts) && t.l.has(event.AvailableAt) {
			work = append(work, t.count("pending", ` AND t.{available} IS NOT NULL AND t."attempts" > 0`, &f.Retrying))
		}
	} else {
		work = append(work, statement{
			sql:  t.sql("SELECT pg_catalog.count(*) FROM (SELECT FROM {table} t WHERE " + t.l.isPending() + " LIMIT $1::pg_catalog.int8) x"),
			args: [][]byte{number(outbox.CountLimit)}, row: into(&f.Pending),
		})
	}
	if made := t.l.madeAt(); made != "" {
		micros := int64(0)
		s := t.oldest("t." + quote(made))
		s.row = into(&micros)
		if err := t.db.transact(ctx, "reading the figures of "+t.Relation(), append(work, s)...); err != nil {
			return outbox.Figures{}, err
		}
		f.OldestPending = time.Duration(micros) * time.Microsecond
		return f, nil
	}
	return f, t.db.transact(ctx, "reading the figures of "+t.Relation(), work...)
}

func into(n *int64) func([][]byte) error {
	return func(v [][]byte) (err error) { *n, err = strconv.ParseInt(string(v[0]), 10, 64); return err }
}

// count counts rows in a state, up to the limit, by the index.
func (t *Table) count(state, more string, n *int64) statement {
	site := "t.{route} = routes.r"
	if !t.l.columns[t.l.schema.Columns[event.Route]].notNull {
		site = "(t.{route} = routes.r OR t.{route} IS NULL AND routes.r IS NULL)"
	}
	return statement{
		sql: t.sql("WITH RECURSIVE " + routes + "\nSELECT pg_catalog.count(*) FROM (SELECT FROM routes CROSS JOIN LATERAL (SELECT FROM {table} t WHERE " + site +
			" AND t.{status} = '" + state + "'" + more + " LIMIT $1::pg_catalog.int8) c LIMIT $1::pg_catalog.int8) x"),
		args: [][]byte{number(outbox.CountLimit)}, row: into(n),
	}
}

// oldest is the age in microseconds of the oldest row that is not published.
func (t *Table) oldest(made string) statement {
	const age = "SELECT coalesce(GREATEST((EXTRACT(epoch FROM pg_catalog.clock_timestamp() - pg_catalog.min(x.m) FILTER (WHERE pg_catalog.isfinite(x.m))) * 1000000)::pg_catalog.int8, 0), 0) FROM ("
	limit := strconv.Itoa(sample)
	if !t.l.states() {
		return statement{sql: t.sql(age + "SELECT " + made + " AS m FROM {table} t WHERE " + t.l.isPending() + t.front() + " LIMIT " + limit + ") x")}
	}
	kinds := []string{""}
	if t.l.has(event.AvailableAt) {
		kinds = []string{" AND t.{available} IS NULL", " AND t.{available} IS NOT NULL"}
	}
	return statement{sql: t.sql("WITH RECURSIVE " + routes + "\n" + age + "SELECT c.m " + t.l.perRoute(made+" AS m", "pending", kinds, "", limit) +
		"\nUNION ALL SELECT c.m " + t.l.perRoute(made+" AS m", "processing", kinds, "", limit) + ") x")}
}

// front orders a table without states by age where an index does; elsewhere the
// rows that were written first as a rule come first by themselves.
func (t *Table) front() string {
	if by := t.l.orderColumns(); t.l.schema.Preset == event.Basic && t.l.hasColumn(colSeq) {
		return " ORDER BY " + by[0]
	}
	if at := t.l.schema.Columns[event.OccurredAt]; t.l.indexed(at) {
		return " ORDER BY t." + quote(at)
	}
	return ""
}
