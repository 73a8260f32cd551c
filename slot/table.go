package slot

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/event"
)

// tableInfo is what the catalog says of one outbox table.
type tableInfo struct {
	Table
	exists    bool
	kind      string // pg_class.relkind: r table, p partitioned, v view, m materialized view, f foreign table
	unlogged  bool
	temporary bool
	columns   []columnInfo // in the order of the table
	leaves    []Table
	triggers  []string
	indexes   []indexInfo
	rights    tableRights
	// alike are tables whose name differs in case only; read if the table is missing.
	alike []Table
}

type columnInfo struct {
	name      string
	base      string // name of the type below all domains
	kind      string // pg_type.typtype: b base, e enum, …
	generated bool
}

func (t *tableInfo) partitioned() bool { return t.kind == "p" }

func (t *tableInfo) column(name string) (columnInfo, bool) {
	i := slices.IndexFunc(t.columns, func(c columnInfo) bool { return c.name == name })
	if i < 0 {
		return columnInfo{}, false
	}
	return t.columns[i], true
}

// wanted are the columns of the table that the stream must bring: every mapped
// column that exists, and the extra ones, in the order of the table.
func (t *tableInfo) wanted(o Options) []string {
	var names []string
	for _, c := range t.columns {
		if slices.Contains(o.Schema.Columns[:], c.name) || slices.Contains(o.ExtraColumns, c.name) {
			names = append(names, c.name)
		}
	}
	return names
}

func readTable(ctx context.Context, db DB, t Table) (tableInfo, error) {
	info := tableInfo{Table: t}
	var oid uint32
	var persistence string
	rows, err := db.Query(ctx, `
		select c.oid, c.relkind::text, c.relpersistence::text
		  from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
		 where n.nspname = $1 and c.relname = $2`, t.Schema, t.Name)
	if err != nil {
		return info, err
	}
	if _, err := pgx.ForEachRow(rows, []any{&oid, &info.kind, &persistence}, func() error {
		info.exists = true
		return nil
	}); err != nil {
		return info, err
	}
	if !info.exists {
		info.alike, err = readNames(ctx, db, `
			select n.nspname::text, c.relname::text
			  from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
			 where lower(c.relname) = lower($1) and c.relkind in ('r', 'p') order by 1, 2 limit 3`, t.Name)
		return info, err
	}
	info.unlogged, info.temporary = persistence == "u", persistence == "t"
	if info.columns, err = readColumns(ctx, db, oid); err != nil {
		return info, err
	}
	if info.partitioned() {
		info.leaves, err = readNames(ctx, db, `
			select n.nspname::text, c.relname::text
			  from pg_catalog.pg_partition_tree($1::oid::regclass) p
			  join pg_catalog.pg_class c on c.oid = p.relid join pg_catalog.pg_namespace n on n.oid = c.relnamespace
			 where p.isleaf order by 1, 2`, oid)
		if err != nil {
			return info, err
		}
	}
	rows, err = db.Query(ctx, `select tgname::text from pg_catalog.pg_trigger where tgrelid = $1 and not tgisinternal and tgenabled <> 'D' order by 1`, oid)
	if err != nil {
		return info, err
	}
	if info.triggers, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
		return info, err
	}
	if info.rights, err = readRights(ctx, db, oid); err != nil {
		return info, err
	}
	info.indexes, err = readIndexes(ctx, db, oid)
	return info, err
}

func readNames(ctx context.Context, db DB, sql string, args ...any) ([]Table, error) {
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (t Table, err error) {
		err = row.Scan(&t.Schema, &t.Name)
		return t, err
	})
}

func readColumns(ctx context.Context, db DB, oid uint32) ([]columnInfo, error) {
	rows, err := db.Query(ctx, `
		with recursive below(attnum, type) as (
			select attnum, atttypid from pg_catalog.pg_attribute where attrelid = $1 and attnum > 0 and not attisdropped
			union all
			select b.attnum, t.typbasetype from below b join pg_catalog.pg_type t on t.oid = b.type where t.typtype = 'd')
		select a.attname::text, t.typname::text, t.typtype::text, a.attgenerated <> ''
		  from below b join pg_catalog.pg_attribute a on a.attrelid = $1 and a.attnum = b.attnum
		  join pg_catalog.pg_type t on t.oid = b.type
		 where t.typtype <> 'd' order by a.attnum`, oid)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (c columnInfo, err error) {
		err = row.Scan(&c.name, &c.base, &c.kind, &c.generated)
		return c, err
	})
}

var (
	textTypes = []string{"text", "varchar", "bpchar"}
	uuidTypes = append([]string{"uuid"}, textTypes...)
	// fits lists, for the fields whose type matters to the stream, the types that do.
	// A timestamp without time zone is printed without an offset: we could only guess.
	fits = [event.NumFields][]string{
		event.Payload:     append([]string{"json", "jsonb", "bytea"}, textTypes...),
		event.Tenant:      uuidTypes,
		event.Execution:   uuidTypes,
		event.Correlation: uuidTypes,
		event.Causation:   uuidTypes,
		event.HLC:         {"int8", "numeric"},
		event.AvailableAt: {"timestamptz"},
		event.PublishedAt: {"timestamptz"},
	}
)

// judge says what makes the table unfit for the stream; nil: nothing.
func (t *tableInfo) judge(o Options) *event.Error {
	if e := t.unfit(o); e != nil {
		return e
	}
	return t.lacking(o)
}

// lacking names the first required column that the table does not have now. Rows
// in the log may be older than that and have it: each is read in its own shape.
func (t *tableInfo) lacking(o Options) *event.Error {
	for f, column := range o.Schema.Columns {
		if _, ok := t.column(column); ok || column == "" || !o.Schema.Required[f] {
			continue
		}
		field := event.Field(f)
		return precondition(AnchorTable,
			fmt.Sprintf("table %s has no column %s, which schema %s needs for %s", t.Table, quoteIfNeeded(column), o.Schema.Preset, field),
			fmt.Sprintf("add the column, or map %s to another one under schema.columns", field))
	}
	return nil
}

// unfit says what makes it unfit besides columns that are not there.
func (t *tableInfo) unfit(o Options) *event.Error {
	bad := func(remedy, format string, a ...any) *event.Error {
		return precondition(AnchorTable, fmt.Sprintf("table %s ", t.Table)+fmt.Sprintf(format, a...), remedy)
	}
	switch {
	case !t.exists && len(t.alike) > 0:
		return bad(fmt.Sprintf("write the name as it is: %s", t.alike[0]), "does not exist, but %v does", t.alike[0])
	case !t.exists:
		return bad("run 'walrelay init' to make it, or correct the name", "does not exist")
	case t.kind != "r" && t.kind != "p":
		return bad("name the table that the rows are written to", "is not a table (relkind %s)", t.kind)
	case t.unlogged && !o.polls():
		return bad(fmt.Sprintf("ALTER TABLE %s SET LOGGED", t.SQL()), "is unlogged: its rows never reach the log")
	case t.temporary:
		return bad("use an ordinary table", "is temporary: its rows never reach the log")
	}
	for f, column := range o.Schema.Columns {
		if column == "" {
			continue
		}
		c, ok := t.column(column)
		field := event.Field(f)
		if !ok {
			continue // lacking says whether that matters
		}
		if want := fits[f]; want != nil && c.kind == "b" && !slices.Contains(want, c.base) {
			return bad("change the column's type, or map another column under schema.columns",
				"has column %s of type %s where %s needs %s", quoteIfNeeded(column), c.base, field, strings.Join(want, " or "))
		}
		if c.generated && !o.polls() {
			return bad("make it an ordinary column", "has a generated column %s for %s: generated columns are not in the stream", quoteIfNeeded(column), field)
		}
	}
	for _, column := range o.ExtraColumns {
		if _, ok := t.column(column); !ok {
			return bad("correct the name under headers, or add the column", "has no column %s, which a header asks for", quoteIfNeeded(column))
		}
	}
	return nil
}
