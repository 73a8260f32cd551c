package postgres

import (
	"strconv"
	"strings"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

// query collects a statement's parameters while it is written.
type query struct {
	args    [][]byte
	formats []int16
}

// arg adds a parameter in text form and gives its name.
func (q *query) arg(v []byte) string { return q.add(v, textFormat) }

func (q *query) add(v []byte, format int16) string {
	q.args, q.formats = append(q.args, v), append(q.formats, format)
	return "$" + strconv.Itoa(len(q.args))
}

// ids adds a list of row ids and gives it as an array of the id's type. Binary, where we
// know how: a server spends more on reading thousands of ids than on looking for them.
func (q *query) ids(l *layout, ids []string) string {
	if b, ok := binaryArray(l.columns[l.schema.Columns[event.RowID]].oid, ids); ok {
		return q.add(b, binaryFormat) + "::{id_type}[]"
	}
	return q.arg(array(ids)) + "::{id_type}[]"
}

// byIndex keeps the planner to nested loops over indexes, and to the index that has the
// order which is asked for, for the transaction. Its estimates are wrong where it
// matters: a table that was empty at the last ANALYZE, or published throughout, has a million pending
// rows now, and to read or to sort them costs more than all that is claimed.
const byIndex = `select pg_catalog.set_config('enable_seqscan', 'off', true), pg_catalog.set_config('enable_bitmapscan', 'off', true),
 pg_catalog.set_config('enable_hashjoin', 'off', true), pg_catalog.set_config('enable_mergejoin', 'off', true),
 pg_catalog.set_config('enable_sort', 'off', true)`

// shards is the condition that t's row is in one of the shards; empty: none. The
// hash of all rows would be reckoned for nothing where all shards are asked for.
func (q *query) shards(s outbox.Shards) string {
	if s.Of <= 0 || len(s.Own) == s.Of {
		return ""
	}
	return " AND {shard} % " + q.arg(number(s.Of)) + "::pg_catalog.int8 = ANY (" + q.arg(numbers(s.Own)) + "::pg_catalog.int8[])"
}

func nothing(s outbox.Shards) bool { return s.Of > 0 && len(s.Own) == 0 }

// wanted are the conditions of a claim beside state and due time. What is empty is
// not in the statement: the planner shall not have to think about it.
func (q *query) wanted(l *layout, req *outbox.Request) string {
	var b strings.Builder
	b.WriteString(q.shards(req.Shards))
	if len(req.Held) > 0 {
		b.WriteString(" AND ({key} <> ALL (" + q.arg(array(req.Held)) + "::pg_catalog.text[])")
		if len(req.Heads) > 0 {
			b.WriteString(" OR t.{id} = ANY (" + q.ids(l, req.Heads) + ")")
		}
		if len(req.Loose) > 0 {
			b.WriteString(" OR t.{route}::pg_catalog.text = ANY (" + q.arg(array(req.Loose)) + "::pg_catalog.text[])")
		}
		b.WriteString(")")
	}
	b.WriteString(q.except(l, req))
	if req.Only != nil {
		b.WriteString(" AND t.{id} = ANY (" + q.ids(l, req.Only) + ")")
	}
	return b.String()
}

func (q *query) except(l *layout, req *outbox.Request) string {
	if len(req.Except) == 0 {
		return ""
	}
	return " AND t.{id} <> ALL (" + q.ids(l, req.Except) + ")"
}

// headRows is the part of a claim that perRoute cannot bring: pending rows of held keys
// whose turn it is, all of them that are due. perRoute ends at a limit, and begins with what has been due
// longest; a row that was given back later than those behind it in its key would be cut off, and
// they would be claimed without it, in vain, again and again. Empty when there are none; otherwise wanted
// is to be asked without heads.
func (q *query) headRows(l *layout, req *outbox.Request, columns string) string {
	if len(req.Heads) == 0 || len(req.Held) == 0 || req.Only != nil {
		return ""
	}
	where := "t.{id} = u.id AND " + l.isPending() + " AND " + l.isDue() + " AND {key} = ANY (" + q.arg(array(req.Held)) + "::pg_catalog.text[])"
	if len(req.Loose) > 0 { // those come without being asked for
		where += " AND (t.{route}::pg_catalog.text = ANY (" + q.arg(array(req.Loose)) + "::pg_catalog.text[])) IS NOT TRUE"
	}
	// A subquery with OFFSET is never merged into a join: each row is looked up by its id.
	return "\nUNION ALL\nSELECT c.* FROM pg_catalog.unnest(" + q.ids(l, req.Heads) + ") u (id) CROSS JOIN LATERAL (SELECT " + columns +
		" FROM {table} t WHERE " + where + q.shards(req.Shards) + q.except(l, req) + " OFFSET 0) c"
}

// withoutHeads is the request for what headRows leaves.
func withoutHeads(req *outbox.Request) *outbox.Request {
	rest := *req
	rest.Heads = nil
	return &rest
}

// isPending is the condition that t's row is pending, whether due or not.
func (l *layout) isPending() string {
	switch l.schema.Preset {
	case event.Forze:
		return "t.{status} = 'pending'"
	case event.Basic:
		return "t.{published} IS NULL"
	default:
		return "TRUE"
	}
}

// isDue is the condition that its time has come. statement_timestamp is the server's
// clock, and constant enough for an index; clock_timestamp is not.
func (l *layout) isDue() string {
	if !l.states() || !l.has(event.AvailableAt) {
		return "TRUE"
	}
	return "(t.{available} IS NULL OR t.{available} <= pg_catalog.statement_timestamp())"
}

// routes is the head of a WITH RECURSIVE: the distinct routes, by a step in an index for
// each of them, and a NULL at the end. The steps go down: at the lower end of an
// index stand the rows that were published first, and where those were deleted each step would
// pass all that vacuum has left of them.
const routes = `routes (r) AS (
 SELECT (SELECT t.{route} FROM {table} t WHERE t.{route} IS NOT NULL ORDER BY t.{route} DESC{down} LIMIT 1)
 UNION ALL
 SELECT (SELECT t.{route} FROM {table} t WHERE t.{route} < routes.r ORDER BY t.{route} DESC{down} LIMIT 1) FROM routes WHERE routes.r IS NOT NULL)`

// perRoute writes, for use after routes, a lateral subquery for each of the
// conditions. In the index the due time stands before the order of the table, and to the planner
// IS NULL is no constant: without the due time in front of ORDER BY the rows of a route would
// all be sorted, and so would they with both kinds of due rows in one condition.
func (l *layout) perRoute(columns, state string, due []string, conditions, limit string) string {
	var parts []string
	sites := []string{"t.{route} = routes.r"}
	if !l.columns[l.schema.Columns[event.Route]].notNull {
		sites = append(sites, "t.{route} IS NULL AND routes.r IS NULL")
	}
	order := l.order()
	if l.has(event.AvailableAt) {
		order = "t.{available}, " + order
	}
	for _, site := range sites {
		for _, d := range due {
			parts = append(parts, "(SELECT "+columns+" FROM {table} t WHERE "+site+" AND t.{status} = '"+state+"'"+d+conditions+
				" ORDER BY "+order+" LIMIT "+limit+")")
		}
	}
	return "FROM routes CROSS JOIN LATERAL (\n  " + strings.Join(parts, "\n  UNION ALL\n  ") + ") c"
}

// dueKinds are the conditions of rows whose time has come, one for each stretch of the index.
func (l *layout) dueKinds() []string {
	if !l.has(event.AvailableAt) {
		return []string{""}
	}
	return []string{" AND t.{available} IS NULL", " AND t.{available} <= pg_catalog.statement_timestamp()"}
}

// handle is what a row is found by again within one statement: its id and, where the table
// is partitioned, the partition key, so that only one partition is searched. The names are none
// that a table would have.
type handle struct {
	columns []string // t."id", …
	names   []string // "#0", …
	found   int      // columns from here on are those that it is found by
}

func (l *layout) handle() handle {
	h := handle{columns: []string{"t." + quote(l.schema.Columns[event.RowID])}, names: []string{`"#0"`}}
	for n, key := range l.partKey {
		if key != "" && key != l.schema.Columns[event.RowID] && l.columns[key].notNull {
			h.columns = append(h.columns, "t."+quote(key))
			h.names = append(h.names, `"#`+strconv.Itoa(n+1)+`"`)
		}
	}
	return h
}

// place is a handle that finds a row by where it lies, which costs a quarter of the way by
// its id. A row that moves between the statement's snapshot and the lock is missed, as if
// somebody had it locked: callers for whom that is not good enough look again, with
// a new snapshot. In a partitioned table a place alone is ambiguous.
func (l *layout) place() handle {
	h := l.handle()
	if !l.partitioned {
		h.columns, h.names, h.found = append(h.columns, "t.ctid"), append(h.names, `"#place"`), 1
	}
	return h
}

// selected is the select list that gives the handle its names.
func (h handle) selected() string {
	list := make([]string, len(h.names))
	for i := range list {
		list[i] = h.columns[i] + " AS " + h.names[i]
	}
	return strings.Join(list, ", ")
}

// same is the condition that t is the row that the alias holds the handle of.
func (h handle) same(alias string) string {
	list := make([]string, 0, len(h.names))
	for i := h.found; i < len(h.names); i++ {
		list = append(list, h.columns[i]+" = "+alias+"."+h.names[i])
	}
	return strings.Join(list, " AND ")
}

// locked writes l for a WITH: the rows of t that match rows of source and satisfy the
// guard, locked one by one in the order given. source is a FROM item whose alias is u in
// match, guard and order; carry are further columns of l, made of t and u. A
// lateral subquery that locks is never merged into a join: whatever the statistics say
// of states, each row is looked up by its id.
func (h handle) locked(source, order, match, guard, carry, skip string) string {
	return "l AS MATERIALIZED (SELECT t.* FROM (SELECT u.* FROM " + source + " ORDER BY " + order + ") u CROSS JOIN LATERAL (SELECT " +
		h.selected() + carry + " FROM {table} t WHERE " + match + " AND " + guard + " FOR UPDATE OF t" + skip + ") t)\n"
}

const skipLocked = " SKIP LOCKED"

// byID is locked for a source with a column id.
func (h handle) byID(source, guard, carry, skip string) string {
	return h.locked(source, "u.id", "t.{id} = u.id", guard, carry, skip)
}

// idOrder orders a source of handles by the id.
func (h handle) idOrder() string { return "u." + h.names[0] }
