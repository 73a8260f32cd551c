package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/walrelay/walrelay/event"
)

// partitionLockTimeout bounds how long writers of the outbox queue up behind our wish
// to drop a partition.
const partitionLockTimeout = "500ms"

// partitionsOf lists the partitions of a range with the end of the range; not the default
// partition, which has none. endless: there is one without an upper bound, which is the newest.
const partitionsOf = `SELECT p.relname, n.nspname, p.until, p.endless FROM (
 SELECT c.relname, c.relnamespace, pg_catalog.substring(pg_catalog.pg_get_expr(c.relpartbound, c.oid), 'TO \(''([^'']+)''\)$') AS until,
        pg_catalog.pg_get_expr(c.relpartbound, c.oid) LIKE '% TO (MAXVALUE)' AS endless
   FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
  WHERE i.inhparent = $1::pg_catalog.oid AND NOT i.inhdetachpending) p
 JOIN pg_catalog.pg_namespace n ON n.oid = p.relnamespace
WHERE p.until IS NOT NULL OR p.endless`

// dropPartitions drops partitions whose every row is published and older than keep. A
// partition that somebody uses is left for the next time.
func (t *Table) dropPartitions(ctx context.Context, keep time.Duration) ([]string, error) {
	var old []Name
	typ := "::" + t.l.columns[t.l.rangeColumn].typ
	err := t.db.transact(ctx, "looking for old partitions of "+t.Relation(), statement{
		args: [][]byte{text(t.l.oid), interval(keep)},
		sql: `SELECT q.relname, q.nspname FROM (SELECT c.*, c.until` + typ + ` = pg_catalog.max(c.until` + typ + `) OVER () AND NOT pg_catalog.bool_or(c.endless) OVER () AS newest
 FROM (` + partitionsOf + `) c) q
WHERE NOT q.endless AND q.until` + typ + ` <= pg_catalog.clock_timestamp() - $2::pg_catalog.interval AND NOT q.newest ORDER BY q.until` + typ,
		row: func(v [][]byte) error { old = append(old, Name{Schema: string(v[1]), Name: string(v[0])}); return nil },
	})
	if err != nil {
		return nil, err
	}
	var dropped []string
	for _, p := range old {
		gone, err := t.dropPartition(ctx, p, keep)
		if err != nil {
			return dropped, err
		}
		if gone {
			dropped = append(dropped, p.String())
		}
	}
	return dropped, nil
}

// dropPartition looks twice. The first look reads the whole partition, without a
// lock that anybody would notice. The second, under the lock that dropping needs, has only to
// find what came since: a row that came since and is published already was published
// after the first look, and what is not published stands apart in the index.
func (t *Table) dropPartition(ctx context.Context, p Name, keep time.Duration) (gone bool, err error) {
	err = t.db.converse(ctx, "dropping partition "+p.String(), func(ctx context.Context, tx *tx) error {
		var busy, again int64
		young := "t.{published} IS NULL OR t.{published} >= pg_catalog.clock_timestamp() - $1::pg_catalog.interval"
		if t.l.states() {
			young = "t.{status} <> 'published' OR " + young
		}
		if err := tx.run(ctx, statement{
			sql:  t.partitionSQL(p, "SELECT pg_catalog.count(*) FROM (SELECT FROM {table} t WHERE "+young+" LIMIT 1) x"),
			args: [][]byte{interval(keep)}, row: into(&busy),
		}); err != nil || busy > 0 {
			return err
		}
		err := tx.run(ctx,
			statement{sql: "SELECT pg_catalog.set_config('lock_timeout', '" + partitionLockTimeout + "', true)"},
			statement{sql: "LOCK TABLE ONLY " + t.l.name.SQL() + " IN ACCESS EXCLUSIVE MODE"},
			statement{sql: "LOCK TABLE " + p.SQL() + " IN ACCESS EXCLUSIVE MODE"},
			statement{sql: byIndex},
			statement{sql: t.partitionSQL(p, t.unpublishedSQL()), row: into(&again)})
		if err != nil || again > 0 {
			return passedOver(err)
		}
		gone = true
		return tx.commit(ctx, statement{sql: "DROP TABLE " + p.SQL()})
	})
	return gone && err == nil, err
}

func (t *Table) partitionSQL(p Name, sql string) string {
	l := *t.l
	l.name = p
	return l.words().Replace(sql)
}

// unpublishedSQL finds a row that is not published, by the index of states or of
// unpublished rows.
func (t *Table) unpublishedSQL() string {
	if !t.l.states() {
		return "SELECT pg_catalog.count(*) FROM (SELECT FROM {table} t WHERE t.{published} IS NULL LIMIT 1) x"
	}
	if !t.l.columns[t.l.schema.Columns[event.Route]].notNull {
		return "SELECT pg_catalog.count(*) FROM (SELECT FROM {table} t WHERE t.{status} <> 'published' LIMIT 1) x"
	}
	return "WITH RECURSIVE " + routes + `
SELECT pg_catalog.count(*) FROM (SELECT FROM routes CROSS JOIN LATERAL (
  (SELECT FROM {table} t WHERE t.{route} = routes.r AND t.{status} < 'published' LIMIT 1)
  UNION ALL
  (SELECT FROM {table} t WHERE t.{route} = routes.r AND t.{status} > 'published' LIMIT 1)) c LIMIT 1) x`
}

// passedOver: somebody uses the table and would have to wait; the next look will do.
func passedOver(err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "55P03" { // lock_not_available
		return nil
	}
	return err
}
