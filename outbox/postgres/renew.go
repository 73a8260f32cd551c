package postgres

import (
	"context"

	"github.com/walrelay/walrelay/outbox"
)

// Renew tells the database that rows are still being worked at.
func (t *Table) Renew(ctx context.Context, fence outbox.Fence, ids []string) (renewed outbox.Fence, held []string, err error) {
	if len(ids) == 0 {
		return fence, nil, nil
	}
	if t.Traits().Claims && !t.l.states() {
		return t.renewOpen(ctx, fence, ids)
	}
	renewed = fence
	s := statement{args: [][]byte{array(ids)}, row: func(v [][]byte) error {
		held = append(held, string(v[0]))
		renewed = outbox.Fence(v[1])
		return nil
	}}
	h := t.l.place()
	if t.claimsRows() {
		if err := t.l.need("claim: row", colProcessingAt); err != nil {
			return "", nil, err
		}
		s.args = append(s.args, text(string(fence)))
		s.sql = t.sql("WITH " + h.byID("pg_catalog.unnest($1::{id_type}[]) u (id)",
			`t.{status} = 'processing' AND t."processing_at" = $2::`+t.l.columns[colProcessingAt].typ, "", "") +
			`UPDATE {table} t SET "processing_at" = (SELECT pg_catalog.clock_timestamp()) FROM l WHERE ` + h.same("l") + ` RETURNING t.{id}, t."processing_at"`)
	} else {
		s.sql = t.sql("SELECT t.{id}, ''::pg_catalog.text FROM {table} t WHERE t.{id} = ANY ($1::{id_type}[]) AND " + t.l.isPending())
	}
	err = t.db.transact(ctx, "renewing claims in "+t.Relation(), statement{sql: byIndex}, s)
	return renewed, held, err
}
