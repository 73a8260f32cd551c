package workload

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// transaction writes 1 to MaxRows rows under a few keys and ends it one way or the other.
func (w *writer) transaction(ctx context.Context) (err error) {
	l := w.load
	tx, err := w.conn.Begin(ctx)
	if err != nil {
		return err
	}
	committing := false
	defer func() {
		if err != nil && !committing {
			_ = tx.Rollback(ctx)
			l.note(nil, func(s *Stats) { s.Broken++ })
		}
	}()
	total := 1 + w.rnd.IntN(l.opts.MaxRows)
	keys, err := w.lockKeys(ctx, tx, 1+w.rnd.IntN(min(total, 5)))
	if err != nil {
		return err
	}
	// What tells how a commit ended when the answer got lost; see doubt.
	d := doubt{mark: uuid.New()}
	mark := fmt.Sprintf("insert into %s values ($1) returning pg_current_xact_id()::text", l.opts.ledger())
	if err := tx.QueryRow(ctx, mark, d.mark).Scan(&d.xid); err != nil {
		return err
	}
	rows, err := w.rows(ctx, tx, keys, total)
	if err != nil {
		return err
	}
	if w.chance(l.opts.RollbackShare) {
		if err := tx.Rollback(ctx); err != nil {
			return err
		}
		l.note(nil, func(s *Stats) { s.RolledBack++ })
		return nil
	}
	if w.chance(l.opts.DeleteShare) {
		if err := w.deleteRows(ctx, tx, rows); err != nil {
			return err
		}
	}
	committing = true
	if err := tx.Commit(ctx); err != nil {
		d.rows = rows
		l.doubt(d)
		return err
	}
	l.note(rows, func(s *Stats) { s.Transactions++ })
	return nil
}

// lockKeys picks n keys and locks them until the transaction ends: until its
// commit is in the log, nobody else writes under them. Locks are taken in one
// order, so writers do not deadlock.
func (w *writer) lockKeys(ctx context.Context, tx pgx.Tx, n int) ([]*key, error) {
	var keys []*key
	for _, i := range w.rnd.Perm(len(w.load.keys))[:min(n, len(w.load.keys))] {
		keys = append(keys, w.load.keys[i])
	}
	slices.SortFunc(keys, func(a, b *key) int { return int(a.lock - b.lock) })
	for _, k := range keys {
		if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock($1)", k.lock); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// rows writes total rows in runs of random length and returns those that no
// savepoint took back.
func (w *writer) rows(ctx context.Context, tx pgx.Tx, keys []*key, total int) ([]row, error) {
	var kept []row
	for total > 0 {
		n := 1 + w.rnd.IntN(min(total, 12))
		total -= n
		run := make([]row, n)
		for i := range run {
			k := keys[w.rnd.IntN(len(keys))]
			seq := w.load.draw(k)
			run[i] = row{id: uuid.New(), key: k, seq: seq, bytes: payload(k, seq, w.number, w.load.opts.Padding), at: time.Now()}
		}
		if !w.chance(w.load.opts.SavepointShare) {
			if err := w.insert(ctx, tx, run); err != nil {
				return nil, err
			}
			kept = append(kept, run...)
			continue
		}
		savepoint, err := tx.Begin(ctx)
		if err != nil {
			return nil, err
		}
		if err := w.insert(ctx, savepoint, run); err != nil {
			return nil, err
		}
		if w.chance(1.0 / 3) {
			if err := savepoint.Rollback(ctx); err != nil {
				return nil, err
			}
			continue
		}
		if err := savepoint.Commit(ctx); err != nil {
			return nil, err
		}
		kept = append(kept, run...)
	}
	return kept, nil
}

// insert writes the rows by COPY, by one INSERT, or one by one.
func (w *writer) insert(ctx context.Context, tx pgx.Tx, rows []row) error {
	o := w.load.opts
	columns := o.Schema.columns()
	kind := w.rnd.Float64()
	if kind < o.CopyShare {
		source := pgx.CopyFromSlice(len(rows), func(i int) ([]any, error) { return rows[i].values(o.Schema), nil })
		_, err := tx.CopyFrom(ctx, pgx.Identifier(strings.Split(o.Table, ".")), columns, source)
		return err
	}
	if kind < max(o.CopyShare, 0)+o.MultiRowShare {
		return insertRows(ctx, tx, o, columns, rows)
	}
	for i := range rows {
		if err := insertRows(ctx, tx, o, columns, rows[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

func insertRows(ctx context.Context, tx pgx.Tx, o Options, columns []string, rows []row) error {
	var sql strings.Builder
	fmt.Fprintf(&sql, "insert into %s (%s) values ", o.Table, strings.Join(columns, ", "))
	var args []any
	for i, r := range rows {
		if i > 0 {
			sql.WriteString(", ")
		}
		sql.WriteByte('(')
		for j, value := range r.values(o.Schema) {
			if j > 0 {
				sql.WriteString(", ")
			}
			args = append(args, value)
			fmt.Fprintf(&sql, "$%d", len(args))
		}
		sql.WriteByte(')')
	}
	_, err := tx.Exec(ctx, sql.String(), args...)
	return err
}

func (w *writer) deleteRows(ctx context.Context, tx pgx.Tx, rows []row) error {
	ids := make([]uuid.UUID, len(rows))
	for i, r := range rows {
		ids[i] = r.id
	}
	_, err := tx.Exec(ctx, fmt.Sprintf("delete from %s where %s = any($1)", w.load.opts.Table, w.load.opts.Schema.columns()[0]), ids)
	return err
}
