package postgres

import "context"

// Owed reads the ids of all rows that are neither published nor given up.
func (t *Table) Owed(ctx context.Context, each func(id string)) error {
	return t.db.transact(ctx, "listing unpublished rows of "+t.Relation(), statement{
		sql: t.sql("SELECT t.{id} FROM {table} t WHERE " + t.l.isOpen()),
		row: func(v [][]byte) error { each(string(v[0])); return nil },
	})
}
