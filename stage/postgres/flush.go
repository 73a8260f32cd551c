package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/walrelay/walrelay/stage"
)

// Flush writes what is staged in b, in one statement, and empties b. Call it last
// in the transaction, and once: the checkpoint's row is locked from here to the
// commit. db is the transaction of the business change; anything else is refused
// with [ErrNoTransaction], unless Autocommit allows it. After an error b is as it
// was, and the transaction has to be rolled back. With nothing staged it does
// nothing, and does not look at db.
//
// An error of the database is wrapped, so that a caller who repeats transactions
// can look into it.
func (x *Outbox) Flush(ctx context.Context, db DB, b *stage.Buffer) (Result, error) {
	var res Result
	err := b.Flush(func(events []stage.Staged) error {
		if !x.o.Autocommit || x.o.Form == RowsDeleted {
			if err := db.transaction(); err != nil {
				return err
			}
		}
		res.Mark = events[len(events)-1].Stamp
		var err error
		if x.o.Form == Messages {
			err = x.emitEvents(ctx, db, events)
			res.Written = len(events)
		} else {
			res.Ignored, err = x.insertRows(ctx, db, events)
			res.Written = len(events) - len(res.Ignored)
		}
		return err
	})
	if err != nil {
		return Result{}, fmt.Errorf("flushing to outbox %s: %w", x.o.Table.Sanitize(), err)
	}
	return res, nil
}

// insertRows answers the events that were there already.
func (x *Outbox) insertRows(ctx context.Context, db DB, events []stage.Staged) (ignored []stage.Staged, err error) {
	ids, args, err := x.insertArgs(events)
	if err != nil {
		return nil, err
	}
	written := make(map[string]bool, len(events))
	err = db.rows(ctx, x.insert, args, func(scan func(...any) error) error {
		var id string
		err := scan(&id)
		written[id] = true
		return err
	})
	if err != nil {
		return nil, err
	}
	var gone array
	for i, id := range ids {
		if written[id] {
			gone.add(id)
		} else {
			ignored = append(ignored, events[i])
		}
	}
	if x.o.Form == RowsDeleted && len(written) > 0 {
		// Of its own: a statement does not see the rows that it inserts.
		err = db.rows(ctx, x.remove, []any{gone.String()}, func(func(...any) error) error { return nil })
	}
	return ignored, err
}

// A column of the insert: its name, the type of its array, and its value; or an
// expression that is the same for all rows.
type column struct {
	name, typ string
	add       func(*array, *stage.Staged)
	same      string
}

// columns are those of the forze outbox in its order (outbox contract, 1.1).
// published_at, processing_at and last_error are left to their defaults.
func (o *Options) columns() []column {
	id := func(get func(*stage.Staged) uuid.UUID) func(*array, *stage.Staged) {
		return func(a *array, s *stage.Staged) {
			if u := get(s); u == uuid.Nil {
				a.null()
			} else {
				a.add(u.String())
			}
		}
	}
	all := []column{
		{name: "id", typ: "uuid"}, // insertArgs makes it
		{name: "outbox_route", typ: "text", add: func(a *array, s *stage.Staged) { a.add(s.Route) }},
		{name: "event_id", typ: "uuid", add: id(func(s *stage.Staged) uuid.UUID { return s.ID })},
		{name: "event_type", typ: "text", add: func(a *array, s *stage.Staged) { a.add(s.Type) }},
		{name: "tenant_id", typ: "uuid", add: id(func(s *stage.Staged) uuid.UUID { return s.Tenant })},
		{name: "execution_id", typ: "uuid", add: id(func(s *stage.Staged) uuid.UUID { return s.Execution })},
		{name: "correlation_id", typ: "uuid", add: id(func(s *stage.Staged) uuid.UUID { return s.Correlation })},
		{name: "causation_id", typ: "uuid", add: id(func(s *stage.Staged) uuid.UUID { return s.Causation })},
		{name: "occurred_at", typ: "timestamptz", add: func(a *array, s *stage.Staged) { a.add(moment(s.OccurredAt)) }},
		{name: "payload", typ: "jsonb", add: func(a *array, s *stage.Staged) { a.add(string(s.Body)) }},
		{name: "status", same: "'pending'"},
		{name: "created_at", same: "$1::text::timestamptz"},
		{name: "attempts", same: "0"},
		{name: "available_at", same: "null"},
		{name: "ordering_key", typ: "text", add: func(a *array, s *stage.Staged) { a.some(s.Key) }},
	}
	if !o.OmitHLC {
		all = append(all, column{name: "hlc", typ: "bigint", add: func(a *array, s *stage.Staged) { a.add(packed(s.Stamp)) }})
	}
	if !o.OmitTraceparent {
		all = append(all, column{name: "traceparent", typ: "text", add: func(a *array, s *stage.Staged) { a.some(s.Traceparent) }})
	}
	if o.AggregateVersion {
		all = append(all, column{name: "aggregate_version", typ: "bigint", add: func(a *array, s *stage.Staged) {
			if s.AggregateVersion == 0 {
				a.null()
			} else {
				a.add(strconv.FormatInt(s.AggregateVersion, 10))
			}
		}})
	}
	return all
}

// moment is a time as a parameter.
func moment(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05.999999Z07:00") }

// insertStatement takes $1 created_at, one array for each column, and the node key
// and mark of the checkpoint.
func (o *Options) insertStatement() string {
	var names, values, arrays, fields []string
	n := 1
	for _, c := range o.columns() {
		names = append(names, c.name)
		if c.same != "" {
			values = append(values, c.same)
			continue
		}
		n++
		values = append(values, "u."+c.name)
		arrays = append(arrays, fmt.Sprintf("$%d::%s[]", n, c.typ))
		fields = append(fields, c.name)
	}
	sql := `with written as (
 insert into ` + o.Table.Sanitize() + ` (` + strings.Join(names, ", ") + `)
 select ` + strings.Join(values, ", ") + `
 from unnest(` + strings.Join(arrays, ", ") + `) with ordinality as u (` + strings.Join(fields, ", ") + `, n)
 order by u.n
 on conflict (outbox_route, event_id) do nothing
 returning id)` + o.checkpointClause(n+1)
	return sql + `
select id::text from written`
}

// checkpointClause raises the mark in the same statement. A clause that nothing reads
// runs after the rest, so that the row's lock is the last that is taken.
//
// Source: PostgreSQL documentation, 7.8.4 "Data-Modifying Statements in WITH";
// src/backend/executor/execMain.c, ExecPostprocessPlan.
func (o *Options) checkpointClause(n int) string {
	if o.NoCheckpoint {
		return ""
	}
	return ", mark as (\n" + o.Checkpoint.upsert(fmt.Sprintf("$%d", n), fmt.Sprintf("$%d", n+1)) + ")"
}

func (x *Outbox) insertArgs(events []stage.Staged) (ids []string, args []any, err error) {
	args = []any{moment(x.o.Now())}
	for _, c := range x.o.columns() {
		if c.same != "" {
			continue
		}
		var a array
		for i := range events {
			if c.add != nil {
				c.add(&a, &events[i])
				continue
			}
			id, err := uuid.NewV7()
			if err != nil {
				return nil, nil, fmt.Errorf("making a row's id: %w", err)
			}
			ids = append(ids, id.String())
			a.add(id.String())
		}
		args = append(args, a.String())
	}
	return ids, x.withMark(args, events), nil
}

func (x *Outbox) withMark(args []any, events []stage.Staged) []any {
	if x.o.NoCheckpoint {
		return args
	}
	return append(args, x.o.Checkpoint.nodeKey(), packed(events[len(events)-1].Stamp))
}
