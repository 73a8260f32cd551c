package postgres

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

const anchorPoisonRow event.Anchor = "poison-row"

// shape says which columns of a row are read, and what each is for. State, due
// time and time of publishing are not read: they are about the row, not the event.
type shape struct {
	// list is the select list; the table's alias is t.
	list     string
	relation string
	columns  []shapeColumn
	extras   int
	// id, made and attempts are places in the list; -1: the table has none.
	id, made, attempts int
}

type shapeColumn struct {
	name    string
	fields  []event.Field
	extras  []int
	bytea   bool
	notNull event.Field // the field for whose sake NULL is poison, or NumFields
}

func newShape(l *layout, extra []string) *shape {
	s := &shape{relation: l.name.String(), extras: len(extra), made: -1, attempts: -1}
	place := map[string]int{}
	var list []string
	column := func(name string) *shapeColumn {
		at, ok := place[name]
		if !ok {
			at = len(s.columns)
			place[name] = at
			s.columns = append(s.columns, shapeColumn{name: name, bytea: l.columns[name].oid == byteaOID, notNull: event.NumFields})
			list = append(list, "t."+quote(name))
		}
		return &s.columns[at]
	}
	for f := range event.NumFields {
		if !l.has(f) || f == event.Status || f == event.AvailableAt || f == event.PublishedAt {
			continue
		}
		c := column(l.schema.Columns[f])
		c.fields = append(c.fields, f)
		// As in the log: NULL in these three is for the router to judge.
		if l.schema.Required[f] && f != event.Payload && f != event.Route && f != event.Key {
			c.notNull = f
		}
	}
	for i, name := range extra {
		if l.hasColumn(name) {
			c := column(name)
			c.extras = append(c.extras, i)
		}
	}
	s.id = place[l.schema.Columns[event.RowID]]
	if made := l.madeAt(); made != "" {
		s.made = len(list)
		// A double holds microseconds of our time exactly enough, and is cheaper than EXTRACT's numeric.
		list = append(list, "CASE WHEN pg_catalog.isfinite(t."+quote(made)+") THEN (pg_catalog.date_part('epoch', t."+quote(made)+") * 1000000)::pg_catalog.int8 END")
	}
	if l.states() && l.hasColumn(colAttempts) {
		s.attempts = len(list)
		list = append(list, "t."+quote(colAttempts))
	}
	s.list = strings.Join(list, ", ")
	return s
}

// read makes a row of the values that list selected, copying them into a.
func (s *shape) read(values [][]byte, a *arena, row *outbox.Row) error {
	ev := &row.Event
	ev.Relation = s.relation
	if s.extras > 0 {
		ev.Extra = make([][]byte, s.extras)
	}
	for i := range s.columns {
		c := &s.columns[i]
		v := a.keep(values[i])
		if c.bytea && v != nil {
			raw, err := unhex(v)
			if err != nil {
				return fmt.Errorf("column %s of %s: %w", c.name, s.relation, err)
			}
			v = raw
		}
		if v == nil && c.notNull < event.NumFields && ev.Refused == nil {
			ev.Refused = &event.Error{
				Class: event.Poison, Anchor: anchorPoisonRow,
				What: fmt.Sprintf("row %s of %s: column %q (field %s) is NULL", values[s.id], s.relation, c.name, c.notNull),
			}
		}
		for _, f := range c.fields {
			ev.Fields[f] = v
		}
		for _, x := range c.extras {
			ev.Extra[x] = v
		}
	}
	row.ID = a.name(values[s.id])
	if route := ev.Fields[event.Route]; a.route != string(route) {
		a.route = string(route)
	}
	row.Route = a.route
	row.Key = a.name(ev.Fields[event.Key])
	if row.Key == "" {
		row.Key = a.name(ev.Fields[event.EventID])
	}
	var err error
	if s.made >= 0 && values[s.made] != nil {
		ev.CommitMicros, err = strconv.ParseInt(string(values[s.made]), 10, 64)
	}
	if err == nil && s.attempts >= 0 && values[s.attempts] != nil {
		row.Attempts, err = strconv.Atoi(string(values[s.attempts]))
	}
	return err
}

// unhex decodes \x00ff… in place.
func unhex(v []byte) ([]byte, error) {
	if len(v) < 2 || v[0] != '\\' || v[1] != 'x' {
		return nil, fmt.Errorf("the server printed a bytea that does not begin with \\x")
	}
	n, err := hex.Decode(v, v[2:])
	return v[:n:n], err
}
