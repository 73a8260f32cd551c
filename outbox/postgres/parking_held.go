package postgres

import (
	"context"

	"github.com/walrelay/walrelay/outbox"
)

// Held lists the held keys. First it brings entries in line with their rows, which
// others may have changed:
//
//	row published or gone          the entry goes
//	row pending or processing      parked becomes retrying: somebody requeued it
//	row failed                     retrying becomes parked: it failed again
func (k *Parking) Held(ctx context.Context) ([]outbox.HeldKey, error) {
	work := []statement{{sql: byIndex}}
	for _, name := range k.db.o.Tables {
		t, err := k.tableOf(ctx, name.String(), "any")
		if err != nil {
			return nil, err
		}
		if t.fails() {
			work = append(work, k.align(t)...)
		}
	}
	var held []outbox.HeldKey
	at := map[string]int{}
	owner := [][]byte{text(k.db.o.Owner)}
	work = append(
		work, statement{
			sql: `SELECT e.key, pg_catalog.bool_or(e.state = 'parked'), pg_catalog.bool_and(e.state = 'behind') FROM ` + k.table + ` e
 WHERE e.owner = $1::pg_catalog.text AND e.key <> '' GROUP BY e.key ORDER BY pg_catalog.min(e.id)`,
			args: owner,
			row: func(v [][]byte) error {
				key := string(v[0])
				at[key] = len(held)
				held = append(held, outbox.HeldKey{Key: outbox.FromPlainText(key), Parked: string(v[1]) == "t", Behind: string(v[2]) == "t"})
				return nil
			},
		}, statement{
			sql: `SELECT e.key, e.row_id FROM ` + k.table + ` e
 WHERE e.owner = $1::pg_catalog.text AND e.key <> '' AND e.state = 'retrying' AND e.record IS NULL ORDER BY e.id`,
			args: owner,
			row: func(v [][]byte) error {
				if i, ok := at[string(v[0])]; ok {
					held[i].Heads = append(held[i].Heads, string(v[1]))
				}
				return nil
			},
		})
	if err := k.db.transact(ctx, "reading the held keys of source "+k.db.o.Source, work...); err != nil {
		return nil, err
	}
	return held, nil
}

// align are the statements that bring the entries of one table in line with its rows. The
// entries are selected before their ids are cast: other tables may have ids of another type.
func (k *Parking) align(t *Table) []statement {
	args := [][]byte{text(k.db.o.Owner), text(t.Relation())}
	seen := t.sql(`WITH mine AS MATERIALIZED (SELECT e.id, e.row_id, e.state FROM ` + k.table + ` e
 WHERE e.owner = $1::pg_catalog.text AND e.relation = $2::pg_catalog.text AND e.record IS NULL AND e.row_id <> ''),
seen AS MATERIALIZED (SELECT m.id, m.state, t.{status} AS row_state, t."last_error" AS row_error
 FROM mine m LEFT JOIN {table} t ON t.{id} = m.row_id::{id_type})
`)
	return []statement{
		{args: args, sql: seen + `DELETE FROM ` + k.table + ` e USING seen s WHERE e.id = s.id AND (s.row_state IS NULL OR s.row_state = 'published')`},
		{args: args, sql: seen + `UPDATE ` + k.table + ` e SET state = CASE s.row_state WHEN 'failed' THEN 'parked' ELSE 'retrying' END,
 error = CASE s.row_state WHEN 'failed' THEN coalesce(s.row_error, e.error) ELSE e.error END
 FROM seen s WHERE e.id = s.id AND e.state = s.state
 AND (s.state = 'parked' AND s.row_state IN ('pending', 'processing') OR s.state = 'retrying' AND s.row_state = 'failed')`},
	}
}

// Whole gives the events that are kept whole and may go. One that was left behind
// waits until nothing of its key is parked, and no row of it is still to go before.
func (k *Parking) Whole(ctx context.Context, limit int) ([]outbox.Parked, error) {
	return k.entries(ctx, "reading the parked events that may go", statement{
		sql: `SELECT ` + keptColumns + ` FROM ` + k.table + ` e WHERE e.owner = $1::pg_catalog.text AND e.record IS NOT NULL
 AND (e.state = 'retrying' OR e.state = 'behind' AND NOT EXISTS (SELECT FROM ` + k.table + ` b WHERE b.owner = e.owner AND b.key = e.key AND e.key <> ''
  AND (b.state = 'parked' OR b.state = 'retrying' AND b.record IS NULL)))
 ORDER BY coalesce(e.commit_lsn, '0/0'::pg_catalog.pg_lsn), e.ordinal, e.id LIMIT $2::pg_catalog.int8`,
		args: [][]byte{text(k.db.o.Owner), number(limit)},
	})
}

// Kept lists the events that the log brought and that are kept whole.
func (k *Parking) Kept(ctx context.Context) ([]outbox.Parked, error) {
	return k.entries(ctx, "reading what is kept whole", statement{
		sql: `SELECT ` + entryColumns + ` FROM ` + k.table + ` e
 WHERE e.owner = $1::pg_catalog.text AND e.record IS NOT NULL AND e.commit_lsn IS NOT NULL`,
		args: [][]byte{text(k.db.o.Owner)},
	})
}

// Done forgets entries: their events are published.
func (k *Parking) Done(ctx context.Context, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	return k.db.transact(ctx, "forgetting parked events that were published", statement{
		sql:  `DELETE FROM ` + k.table + ` e WHERE e.owner = $1::pg_catalog.text AND e.id = ANY ($2::pg_catalog.int8[])`,
		args: [][]byte{text(k.db.o.Owner), idArray(ids)},
	})
}

func (k *Parking) entries(ctx context.Context, doing string, s statement) ([]outbox.Parked, error) {
	var list []outbox.Parked
	s.row = func(v [][]byte) error {
		p, err := k.scanEntry(v)
		list = append(list, p)
		return err
	}
	if err := k.db.transact(ctx, doing, s); err != nil {
		return nil, err
	}
	return list, nil
}

func idArray(ids []int64) []byte {
	list := make([]int, len(ids))
	for i, id := range ids {
		list[i] = int(id)
	}
	return numbers(list)
}
