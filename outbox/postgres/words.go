package postgres

import (
	"strings"

	"github.com/walrelay/walrelay/event"
)

// words replaces names in braces by those of the relation:
//
//	{table}             its quoted name
//	{id} {status} …     the quoted column of a field: id, event, route, status, available, published
//	{id_type}           the type of the row's id, for casts: $1::{id_type}[]
//	{key}               the effective key of t: the key column, or the event id where it is null or empty
//	{down}              what goes on ordering rows of a route downwards, where an index has routes and event ids
//	{shard}             the hash of {key} that its shard is made of: {shard} % Of = ANY(Own)
//
// The table's alias is t wherever {key} or {shard} is used.
func (l *layout) words() *strings.Replacer {
	pairs := []string{
		"{table}", l.name.SQL(), "{id_type}", l.columns[l.schema.Columns[event.RowID]].typ, "{key}", l.keySQL(),
		"{shard}", "(pg_catalog.hashtextextended(" + l.keySQL() + ", 0) & 9223372036854775807)",
	}
	down := ""
	if l.indexed(l.schema.Columns[event.Route], l.schema.Columns[event.EventID]) {
		down = ", t." + quote(l.schema.Columns[event.EventID]) + " DESC"
	}
	pairs = append(pairs, "{down}", down)
	for word, f := range map[string]event.Field{
		"id": event.RowID, "event": event.EventID, "route": event.Route, "status": event.Status,
		"available": event.AvailableAt, "published": event.PublishedAt, "hlc": event.HLC,
	} {
		pairs = append(pairs, "{"+word+"}", quote(l.schema.Columns[f]))
	}
	return strings.NewReplacer(pairs...)
}

// keySQL compares bytes, whatever the column's collation: in our memory keys do too.
func (l *layout) keySQL() string {
	id := "t." + quote(l.schema.Columns[event.EventID]) + "::pg_catalog.text"
	if !l.has(event.Key) {
		return "(" + id + ` COLLATE "pg_catalog"."C")`
	}
	key := "t." + quote(l.schema.Columns[event.Key])
	if l.columns[l.schema.Columns[event.Key]].base == "bpchar" {
		key = "pg_catalog.concat(" + key + ")" // a cast would cut the blanks that the value is printed with
	} else {
		key += "::pg_catalog.text"
	}
	return "(COALESCE(NULLIF(" + key + ", ''), " + id + `) COLLATE "pg_catalog"."C")`
}

// order is the table order of t's rows, for ORDER BY.
func (l *layout) order() string { return strings.Join(l.orderColumns(), ", ") }

func (l *layout) orderColumns() []string {
	by := l.orderNames()
	for i := range by {
		by[i] = "t." + quote(by[i])
	}
	return by
}

func (l *layout) orderNames() []string {
	var by []string
	add := func(name string) {
		if l.hasColumn(name) {
			by = append(by, name)
		}
	}
	id := l.schema.Columns[event.RowID]
	switch l.schema.Preset {
	case event.Forze:
		add(l.schema.Columns[event.HLC])
		add(colCreatedAt)
	case event.Basic:
		if l.hasColumn(colSeq) {
			return []string{colSeq, id}
		}
		add(l.schema.Columns[event.OccurredAt])
	default:
		add(l.schema.Columns[event.OccurredAt])
	}
	return append(by, id)
}

// madeAt is the column that says when a row was made; empty: the table does not know.
func (l *layout) madeAt() string {
	for _, name := range []string{colCreatedAt, l.schema.Columns[event.OccurredAt]} {
		if name != "" && l.hasColumn(name) {
			return name
		}
	}
	return ""
}
