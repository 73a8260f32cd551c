package postgres

import (
	"context"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

// Mark writes the outcome of events that the log brought.
//
// The transaction's first statement notes a snapshot, the second writes, and what
// it did not hit is looked for afterwards. A transaction that the noted snapshot sees
// was seen by the writing statement too, whose snapshot is younger: then its row, if absent, is gone.
func (t *Table) Mark(ctx context.Context, marks []outbox.Mark) (outbox.Marked, error) {
	var m outbox.Marked
	if len(marks) == 0 {
		return m, nil
	}
	if t.db.o.AfterPublish == Keep {
		m.Settled = len(marks)
		return m, nil
	}
	first := make(map[string]int, len(marks)) // an id may come twice in one call
	ids, errs := make([]string, 0, len(marks)), make([]string, 0, len(marks))
	failed := 0
	for i := range marks {
		if _, twice := first[marks[i].ID]; twice {
			continue
		}
		first[marks[i].ID] = i
		ids, errs = append(ids, marks[i].ID), append(errs, marks[i].Error)
		if marks[i].Error != "" && t.l.states() {
			failed++
		}
	}
	var now snapshot
	hit := make(map[string]string, len(ids))
	work := []statement{{sql: byIndex}, {
		sql: "select pg_catalog.pg_current_snapshot()",
		row: func(v [][]byte) (err error) { now, err = parseSnapshot(string(v[0])); return err },
	}}
	for _, s := range t.marking(ids, errs, failed) {
		s.row = func(v [][]byte) error { hit[string(v[0])] = string(v[1]); return nil }
		work = append(work, s)
	}
	if err := t.db.transact(ctx, "marking rows of "+t.Relation(), work...); err != nil {
		return m, err
	}
	missed := ids[:0]
	for _, id := range ids {
		if _, ok := hit[id]; !ok {
			missed = append(missed, id)
		}
	}
	found, err := t.find(ctx, missed)
	if err != nil {
		return outbox.Marked{}, err
	}
	for i := range marks {
		id := marks[i].ID
		old, wasHit := hit[id]
		pending, isThere := found[id]
		switch {
		case wasHit && first[id] != i:
			m.Settled++
		case wasHit && old == "processing":
			m.Foreign++
		case wasHit:
			m.Pending++
		case isThere && !pending:
			m.Settled++
		case isThere, !now.sees(marks[i].Xid):
			m.Unseen = append(m.Unseen, i) // it became visible since, or is not yet
		default:
			m.Absent++
		}
	}
	return m, nil
}

// marking are the statements that write the marks. They answer the id and the
// state before.
func (t *Table) marking(ids, errs []string, failed int) []statement {
	h := t.l.handle()
	guard, old := t.l.isPending(), "'pending'"
	if t.l.states() {
		guard, old = "t.{status} IN ('pending', 'processing')", "t.{status}"
	}
	write := func(ids, errs []string, what string) statement {
		q := &query{}
		arrays, names, carried := []string{q.arg(array(ids)) + "::{id_type}[]"}, "id", ""
		if errs != nil {
			arrays = append(arrays, q.arg(optionalArray(errs))+"::pg_catalog.text[]")
			names, carried = "id, error", ", u.error AS error"
		}
		return statement{args: q.args, sql: t.sql("WITH " + h.byID(unnest(arrays...)+" u ("+names+")", guard, carried+", "+old+" AS old") +
			what + " WHERE " + h.same("l") + " RETURNING t.{id}, l.old")}
	}
	update := func(ids, errs []string, set string) statement {
		return write(ids, errs, "UPDATE {table} t SET "+set+" FROM l")
	}
	switch {
	case !t.deletes() && failed == 0:
		return []statement{update(ids, nil, t.publishedSet(""))}
	case !t.deletes():
		return []statement{update(ids, errs, t.publishedSet("l.error IS NOT NULL"))}
	case failed == 0:
		return []statement{write(ids, nil, "DELETE FROM {table} t USING l")}
	}
	// Published rows go, failed ones stay.
	var gone, stay, why []string
	for i, id := range ids {
		if errs[i] == "" {
			gone = append(gone, id)
		} else {
			stay, why = append(stay, id), append(why, errs[i])
		}
	}
	return []statement{
		write(gone, nil, "DELETE FROM {table} t USING l"),
		update(stay, why, t.publishedSet("l.error IS NOT NULL")),
	}
}

// find answers which of the ids are there, and whether they are in a state that a mark changes.
func (t *Table) find(ctx context.Context, ids []string) (map[string]bool, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	open := t.l.isPending()
	if t.l.states() {
		open = "t.{status} IN ('pending', 'processing')"
	}
	found := map[string]bool{}
	err := t.db.transact(ctx, "looking for rows of "+t.Relation(), statement{sql: byIndex}, statement{
		sql:  t.sql("SELECT t.{id}, " + open + " FROM {table} t WHERE t.{id} = ANY ($1::{id_type}[])"),
		args: [][]byte{array(ids)},
		row:  func(v [][]byte) error { found[string(v[0])] = string(v[1]) == "t"; return nil },
	})
	return found, err
}

// LookUp answers which of the ids are there and not pending any more.
func (t *Table) LookUp(ctx context.Context, ids []string) (map[string]bool, error) {
	done := map[string]bool{}
	if len(ids) == 0 || t.l.schema.Preset == event.Debezium {
		return done, nil // a row that is there is pending
	}
	err := t.db.transact(ctx, "looking rows up in "+t.Relation(), statement{sql: byIndex}, statement{
		sql:  t.sql("SELECT t.{id} FROM {table} t WHERE t.{id} = ANY ($1::{id_type}[]) AND NOT (" + t.l.isPending() + ")"),
		args: [][]byte{array(ids)},
		row:  func(v [][]byte) error { done[string(v[0])] = true; return nil },
	})
	return done, err
}
