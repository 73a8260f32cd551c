package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/walrelay/walrelay/event"
)

// Columns that a preset has beside those that carry fields.
const (
	colCreatedAt    = "created_at"
	colProcessingAt = "processing_at"
	colLastError    = "last_error"
	colAttempts     = "attempts"
	colSeq          = "seq"
)

// byteaOID is the type bytea (pg_type.dat). Its values are carried raw; those of a
// domain over it stay in the text form, as in the log.
const byteaOID = "17"

// layout is what one relation really looks like. It is read once.
type layout struct {
	name    Name
	schema  event.Schema
	oid     string
	columns map[string]column
	// indexes hold the columns of each usable index, in order; an expression is "".
	indexes []index
	// partitioned: the relation has partitions; rangeColumn is the one timestamp
	// column that their ranges are of, or empty.
	partitioned bool
	rangeColumn string
	partKey     []string
	owned       bool // the role may drop its partitions
	// walBlock and walSegment are the sizes of a page and of a segment of the log, in bytes.
	walBlock, walSegment uint64
}

type column struct {
	name    string
	oid     string
	typ     string // the base type, quoted: "pg_catalog"."uuid"
	base    string // its bare name: uuid
	notNull bool
}

type index struct {
	columns []string
	partial bool
}

// readLayout asks the catalog for one relation.
func (d *Database) readLayout(ctx context.Context, name Name) (*layout, error) {
	l := &layout{name: name, schema: d.o.Schema, columns: map[string]column{}}
	var kind, strategy string
	arg := [][]byte{text(name.Schema), text(name.Name)}
	const rel = ` from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace and n.nspname = $1 and c.relname = $2 `
	err := d.transact(
		ctx, "reading the columns of "+name.String(),
		statement{
			sql: `select c.oid, c.relkind, pg_catalog.pg_has_role(c.relowner, 'USAGE'), coalesce(p.partstrat::text, ''),
 (select setting::int8 from pg_catalog.pg_settings where name = 'wal_block_size'),
 pg_catalog.pg_size_bytes(pg_catalog.current_setting('wal_segment_size'))` + rel + `
 left join pg_catalog.pg_partitioned_table p on p.partrelid = c.oid`,
			args: arg,
			row: func(v [][]byte) error {
				l.oid, kind, l.owned, strategy = string(v[0]), string(v[1]), string(v[2]) == "t", string(v[3])
				_, err := fmt.Sscan(string(v[4])+" "+string(v[5]), &l.walBlock, &l.walSegment)
				return err
			},
		},
		statement{
			// A domain is followed to its base type, for casts.
			sql: `with recursive base (attname, attnotnull, attnum, att, type) as (
 select a.attname, a.attnotnull, a.attnum, a.atttypid, a.atttypid` + rel + `
  join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
 union all
 select b.attname, b.attnotnull, b.attnum, b.att, t.typbasetype from base b join pg_catalog.pg_type t on t.oid = b.type where t.typtype = 'd')
select b.attname, b.att, b.attnotnull, n.nspname, t.typname from base b join pg_catalog.pg_type t on t.oid = b.type
 join pg_catalog.pg_namespace n on n.oid = t.typnamespace where t.typtype <> 'd' order by b.attnum`,
			args: arg,
			row: func(v [][]byte) error {
				c := column{name: string(v[0]), oid: string(v[1]), notNull: string(v[2]) == "t", base: string(v[4])}
				c.typ = quote(string(v[3])) + "." + quote(c.base)
				l.columns[c.name] = c
				return nil
			},
		},
		statement{
			sql: `select i.indpred is not null, (select pg_catalog.array_to_string(pg_catalog.array_agg(coalesce(a.attname, '') order by k.n), chr(1))
  from pg_catalog.unnest(i.indkey) with ordinality k (num, n)
  left join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum = k.num and k.num > 0 where k.n <= i.indnkeyatts)` + rel + `
 join pg_catalog.pg_index i on i.indrelid = c.oid and i.indisvalid
 join pg_catalog.pg_class ic on ic.oid = i.indexrelid join pg_catalog.pg_am am on am.oid = ic.relam and am.amname = 'btree'`,
			args: arg,
			row: func(v [][]byte) error {
				l.indexes = append(l.indexes, index{partial: string(v[0]) == "t", columns: strings.Split(string(v[1]), "\x01")})
				return nil
			},
		},
		statement{
			sql: `select coalesce(a.attname, '')` + rel + `
 join pg_catalog.pg_partitioned_table p on p.partrelid = c.oid
 cross join lateral pg_catalog.unnest(p.partattrs) with ordinality k (num, n)
 left join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum = k.num and k.num > 0 order by k.n`,
			args: arg,
			row:  func(v [][]byte) error { l.partKey = append(l.partKey, string(v[0])); return nil },
		})
	if err != nil {
		return nil, err
	}
	if l.oid == "" {
		return nil, l.lacks("does not exist, or the role may not use its schema", "run 'walrelay init' to make it, correct the name, or grant USAGE on the schema")
	}
	l.partitioned = kind == "p"
	if strategy == "r" && len(l.partKey) == 1 {
		if c, ok := l.columns[l.partKey[0]]; ok && (c.base == "timestamptz" || c.base == "timestamp" || c.base == "date") {
			l.rangeColumn = c.name
		}
	}
	return l, l.check()
}

// check refuses a table that nothing can be done with.
func (l *layout) check() error {
	for f, name := range l.schema.Columns {
		if _, ok := l.columns[name]; !ok && l.schema.Required[f] {
			return l.lacks(fmt.Sprintf("has no column %q, which schema %s needs for %s", name, l.schema.Preset, event.Field(f)),
				fmt.Sprintf("add the column, or map %s to another one under schema.columns", event.Field(f)))
		}
	}
	if l.schema.Preset == event.Basic && !l.has(event.PublishedAt) {
		return l.lacks(fmt.Sprintf("has no column %q, without which a published row looks like any other", l.schema.Columns[event.PublishedAt]),
			"add the column (timestamptz, null), or map published_at to another one under schema.columns")
	}
	return nil
}

func (l *layout) lacks(what, remedy string) error {
	return &event.Error{
		Class: event.Halt, Fault: event.FaultPrecondition, What: fmt.Sprintf("table %s %s", l.name, what), Remedy: remedy, Anchor: anchorTable,
	}
}

// need refuses a method to a table that lacks one of the columns.
func (l *layout) need(method string, columns ...string) error {
	for _, c := range columns {
		if _, ok := l.columns[c]; !ok {
			return l.lacks(fmt.Sprintf("has no column %q, which %s needs", c, method),
				fmt.Sprintf("ALTER TABLE %s ADD COLUMN %s as 'walrelay init --print' shows it, or choose another way to read the table", l.name.SQL(), quote(c)))
		}
	}
	return nil
}

// has says whether the table has the field's column.
func (l *layout) has(f event.Field) bool {
	_, ok := l.columns[l.schema.Columns[f]]
	return ok && l.schema.Columns[f] != ""
}

func (l *layout) hasColumn(name string) bool {
	_, ok := l.columns[name]
	return ok
}

// states: rows of the preset carry status.
func (l *layout) states() bool { return l.schema.Preset == event.Forze }

// indexed says whether an index begins with these columns.
func (l *layout) indexed(columns ...string) bool {
	for _, i := range l.indexes {
		if i.partial || len(i.columns) < len(columns) {
			continue
		}
		same := true
		for n, c := range columns {
			same = same && i.columns[n] == c
		}
		if same {
			return true
		}
	}
	return false
}
