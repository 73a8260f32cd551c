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
	var published, failed []int
	for i := range marks {
		if _, twice := first[marks[i].ID]; twice {
			continue
		}
		first[marks[i].ID] = i
		if marks[i].Error != "" && t.l.states() {
			failed = append(failed, i)
		} else {
			published = append(published, i)
		}
	}
	var now snapshot
	old := make([]byte, len(marks)) // the first letter of the state before; zero: not hit
	work := []statement{{sql: byIndex}, {
		sql: "select pg_catalog.pg_current_snapshot()",
		row: func(v [][]byte) (err error) { now, err = parseSnapshot(string(v[0])); return err },
	}}
	for _, some := range []struct {
		of      []int
		verdict outbox.Verdict
	}{{published, outbox.Published}, {failed, outbox.Failed}} {
		if len(some.of) == 0 {
			continue
		}
		s := t.marking(marks, some.of, some.verdict)
		s.row = func(v [][]byte) error {
			return eachNumber(v[1], func(n int) { old[n] = v[0][1] }) // pending, processing
		}
		work = append(work, s)
	}
	if err := t.db.transact(ctx, "marking rows of "+t.Relation(), work...); err != nil {
		return m, err
	}
	var missed []string
	for id, i := range first {
		if old[i] == 0 {
			missed = append(missed, id)
		}
	}
	found, err := t.find(ctx, missed)
	if err != nil {
		return outbox.Marked{}, err
	}
	for i := range marks {
		of := first[marks[i].ID]
		open, isThere := found[marks[i].ID]
		switch {
		case old[of] != 0 && of != i:
			m.Settled++
		case old[of] == 'r': // processing
			m.Foreign++
		case old[of] != 0:
			m.Pending++
		case isThere && !open:
			m.Settled++
		case isThere, !now.sees(marks[i].Xid):
			m.Unseen = append(m.Unseen, i) // it became visible since, or is not yet, or somebody held its lock
		default:
			m.Absent++
		}
	}
	return m, nil
}

// marking is the statement that writes marks of one kind. It answers their indexes, by the
// state before.
func (t *Table) marking(marks []outbox.Mark, of []int, v outbox.Verdict) statement {
	guard, old := t.l.isPending(), "'pending'"
	if t.l.states() {
		guard, old = "t.{status} IN ('pending', 'processing')", "t.{status}"
	}
	ids := make([]string, len(of))
	for n, i := range of {
		ids[n] = marks[i].ID
	}
	q := &query{}
	arrays := []string{q.arg(array(ids)) + "::{id_type}[]", q.arg(numbers(of)) + "::pg_catalog.int4[]"}
	names, carried, set := "id, n", ", u.n AS n, "+old+" AS old", t.publishedSet()
	if v == outbox.Failed {
		errs := make([]string, len(of))
		for n, i := range of {
			errs[n] = outbox.Printable(marks[i].Error)
		}
		set = "{status} = 'failed'"
		if t.l.hasColumn(colLastError) {
			arrays = append(arrays, q.arg(optionalArray(errs))+"::pg_catalog.text[]")
			names, carried, set = names+", error", carried+", u.error AS error", set+`, "last_error" = l.error`
		}
	}
	h := t.l.place()
	return statement{args: q.args, sql: t.sql("WITH " + h.byID(unnest(arrays...)+" u ("+names+")", guard, carried, skipLocked) + ", " + t.done(v, set, "l") +
		" WHERE " + h.same("l") + " RETURNING l.n, l.old)\nSELECT d.old, pg_catalog.array_agg(d.n) FROM done d GROUP BY d.old")}
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
