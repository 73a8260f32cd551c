package postgres

import (
	"context"
	"slices"
	"strings"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

// listLimit is the length of a page where nobody asks for another.
const listLimit = 100

// List reads entries, without the events themselves.
func (k *Parking) List(ctx context.Context, f outbox.ParkedFilter) ([]outbox.Parked, error) {
	if f.Limit <= 0 {
		f.Limit = listLimit
	}
	q := &query{}
	var where strings.Builder
	where.WriteString("e.owner = " + q.arg(text(k.db.o.Owner)) + "::pg_catalog.text AND e.id > " + q.arg(number(f.After)) + "::pg_catalog.int8")
	for column, value := range map[string]string{
		"key": outbox.PlainText(f.Key), "route": outbox.PlainText(f.Route), "event_id": outbox.PlainText(f.EventID), "state": string(f.State),
	} {
		if value != "" {
			where.WriteString(" AND e." + column + " = " + q.arg(text(value)) + "::pg_catalog.text")
		}
	}
	sql := `SELECT ` + entryColumns + ` FROM ` + k.table + ` e WHERE ` + where.String() + ` ORDER BY e.id LIMIT ` + q.arg(number(f.Limit)) + `::pg_catalog.int8`
	return k.entries(ctx, "listing parked events", statement{sql: sql, args: q.args})
}

// Show reads one entry, with the event itself where it is kept whole; nil: there is none.
func (k *Parking) Show(ctx context.Context, id int64) (*outbox.Parked, error) {
	list, err := k.entries(ctx, "reading a parked event", statement{
		sql:  `SELECT ` + keptColumns + ` FROM ` + k.table + ` e WHERE e.owner = $1::pg_catalog.text AND e.id = $2::pg_catalog.int8`,
		args: [][]byte{text(k.db.o.Owner), number(id)},
	})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[0], nil
}

// Retry lets parked events go again: rows become pending as if they were new, events kept
// whole are found by Whole. It answers how many entries it changed; those that are on
// their way already, wait behind another, or were kept half made are not among them.
func (k *Parking) Retry(ctx context.Context, ids []int64) (int, error) {
	return k.release(ctx, "letting parked events go", ids, func(t *Table, rows []string) statement {
		return t.requeueing(rows)
	}, `UPDATE `+k.table+` e SET state = 'retrying' WHERE e.owner = $1::pg_catalog.text AND e.id = ANY ($2::pg_catalog.int8[])
 AND e.state = 'parked' AND coalesce(pg_catalog.jsonb_extract_path_text(e.record, 'partial'), '') <> 'true'`)
}

// Drop gives events up. A row stays failed, and becomes so again if it was told to
// go and was not claimed yet.
func (k *Parking) Drop(ctx context.Context, ids []int64) (int, error) {
	return k.release(ctx, "dropping parked events", ids, func(t *Table, rows []string) statement {
		h := t.l.handle()
		return statement{args: [][]byte{array(rows)}, sql: t.sql(`WITH l AS MATERIALIZED (SELECT ` + h.selected() + ` FROM pg_catalog.unnest($1::{id_type}[]) u (id)
 JOIN {table} t ON t.{id} = u.id WHERE t.{status} = 'pending' ORDER BY t.{id} FOR UPDATE OF t)
UPDATE {table} t SET {status} = 'failed', "last_error" = 'dropped by an operator' FROM l WHERE ` + h.same("l"))}
	}, `DELETE FROM `+k.table+` e WHERE e.owner = $1::pg_catalog.text AND e.id = ANY ($2::pg_catalog.int8[])`)
}

// release changes the rows that entries name, and then the entries: in the order in
// which Park locks them.
func (k *Parking) release(ctx context.Context, doing string, ids []int64, rows func(*Table, []string) statement, entries string) (int, error) {
	if len(ids) == 0 {
		return 0, nil
	}
	args := [][]byte{text(k.db.o.Owner), idArray(ids)}
	named := map[string][]string{}
	if err := k.db.transact(ctx, doing, statement{
		sql: `SELECT e.relation, e.row_id FROM ` + k.table + ` e
 WHERE e.owner = $1::pg_catalog.text AND e.id = ANY ($2::pg_catalog.int8[]) AND e.record IS NULL AND e.row_id <> '' ORDER BY e.relation, e.row_id`,
		args: args,
		row: func(v [][]byte) error {
			named[string(v[0])] = append(named[string(v[0])], string(v[1]))
			return nil
		},
	}); err != nil {
		return 0, err
	}
	work := []statement{{sql: byIndex}}
	for _, name := range k.db.o.Tables { // always in this order
		list := named[name.String()]
		if len(list) == 0 {
			continue
		}
		t, err := k.tableOf(ctx, name.String(), list[0])
		if err != nil {
			return 0, err
		}
		if t.fails() {
			slices.Sort(list)
			work = append(work, rows(t, list))
		}
	}
	var changed int64
	work = append(work, statement{sql: entries, args: args, count: &changed})
	err := k.db.transact(ctx, doing, work...)
	return int(changed), err
}

// requeueing makes failed rows pending again, as the contract of the forze outbox has it.
func (t *Table) requeueing(ids []string) statement {
	h := t.l.handle()
	set := `{status} = 'pending', "attempts" = 0, "last_error" = NULL, {available} = NULL` + t.noClaim()
	if t.l.has(event.PublishedAt) {
		set += ", {published} = NULL"
	}
	return statement{args: [][]byte{array(ids)}, sql: t.sql(`WITH l AS MATERIALIZED (SELECT ` + h.selected() + ` FROM pg_catalog.unnest($1::{id_type}[]) u (id)
 JOIN {table} t ON t.{id} = u.id WHERE t.{status} = 'failed' ORDER BY t.{id} FOR UPDATE OF t)
UPDATE {table} t SET ` + set + ` FROM l WHERE ` + h.same("l"))}
}
