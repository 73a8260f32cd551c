package slot

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/event"
)

// tableRights are what the role of the connection may do with a table. A right
// to one column counts: which columns are written depends on the schema.
type tableRights struct{ selects, updates, deletes, owns bool }

func readRights(ctx context.Context, db DB, oid uint32) (r tableRights, err error) {
	err = db.QueryRow(ctx, `
		select u and pg_catalog.has_any_column_privilege(c.oid, 'SELECT'), u and pg_catalog.has_any_column_privilege(c.oid, 'UPDATE'),
		       u and pg_catalog.has_table_privilege(c.oid, 'DELETE'), pg_catalog.pg_has_role(c.relowner, 'USAGE')
		  from pg_catalog.pg_class c, pg_catalog.has_schema_privilege(c.relnamespace, 'USAGE') u
		 where c.oid = $1`, oid).Scan(&r.selects, &r.updates, &r.deletes, &r.owns)
	return r, err
}

// indexInfo is an index that can serve an order.
type indexInfo struct {
	name    string
	columns []string // of the key; empty where it is an expression
	partial string   // its condition; empty: none
}

func readIndexes(ctx context.Context, db DB, oid uint32) ([]indexInfo, error) {
	rows, err := db.Query(ctx, `
		select c.relname::text,
		       array(select coalesce(a.attname::text, '') from pg_catalog.generate_series(0, i.indnkeyatts - 1) k
		              left join pg_catalog.pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[k] and a.attnum > 0 order by k),
		       coalesce(pg_catalog.pg_get_expr(i.indpred, i.indrelid), '')
		  from pg_catalog.pg_index i join pg_catalog.pg_class c on c.oid = i.indexrelid join pg_catalog.pg_am m on m.oid = c.relam
		 where i.indrelid = $1 and i.indisvalid and m.amname = 'btree' order by 1`, oid)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (x indexInfo, err error) {
		err = row.Scan(&x.name, &x.columns, &x.partial)
		return x, err
	})
}

// strangeTriggers are the triggers that init did not make.
func (t *tableInfo) strangeTriggers(o Options) []string {
	return slices.DeleteFunc(slices.Clone(t.triggers), func(name string) bool { return o.keepsBooks() && name == o.NotifyChannel() })
}

// writeFindings is about what is written to the tables, and about finding the
// rows to claim.
func (v *inventory) writeFindings(o Options) []event.Finding {
	if !o.claims() {
		return nil
	}
	var findings []event.Finding
	for i := range v.tables {
		if t := &v.tables[i]; t.exists {
			findings = append(findings, t.rightsFinding(v.role.name, o), t.indexFinding(o))
			if o.wakes() {
				findings = append(findings, t.wakeUpFinding(o))
			}
			if o.Retains && t.partitioned() && !t.rights.owns {
				findings = append(findings, event.Warned("retention of "+t.String(), "the role does not own the table", "the owner's rights, to drop partitions",
					fmt.Sprintf("ALTER TABLE %s OWNER TO %s (its partitions too), or let another job drop old partitions", t.SQL(), QuoteIdent(v.role.name))))
			}
		}
	}
	return findings
}

func (t *tableInfo) rightsFinding(role string, o Options) event.Finding {
	setting := "rights on " + t.String()
	want := []struct {
		right string
		needs bool
		has   bool
	}{
		{"SELECT", true, t.rights.selects},
		{"UPDATE", true, t.rights.updates}, // marks, and the lock of a claim
		{"DELETE", o.WriteBack == DeleteRows || o.Retains, t.rights.deletes},
	}
	var needed, missing []string
	for _, w := range want {
		if w.needs {
			needed = append(needed, w.right)
			if !w.has {
				missing = append(missing, w.right)
			}
		}
	}
	needs := strings.Join(needed, ", ")
	if len(missing) > 0 {
		lack := strings.Join(missing, ", ")
		return event.Failing(setting, "without "+lack, needs, precondition(AnchorRights,
			fmt.Sprintf("role %s has no right to %s on table %s", quoteIfNeeded(role), lack, t.Table),
			fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %s; GRANT %s ON %s TO %s", QuoteIdent(t.Schema), QuoteIdent(role), needs, t.SQL(), QuoteIdent(role))))
	}
	return event.Fine(setting, needs, needs)
}

// wakeUpFinding: without the trigger rows are found all the same, later.
func (t *tableInfo) wakeUpFinding(o Options) event.Finding {
	setting, needs := "wake-up trigger on "+t.String(), "there, since poll.notify is set"
	if slices.Contains(t.triggers, o.NotifyChannel()) {
		return event.Fine(setting, "there", needs)
	}
	return event.Warned(setting, "missing", needs, "run 'walrelay init'; until then rows wait for poll.interval at most")
}

// indexFinding: without the index every claim sorts all pending rows.
func (t *tableInfo) indexFinding(o Options) event.Finding {
	setting, needs := "claim index on "+t.String(), "an index in the order of claims"
	columns, enough, condition := claimOrder(t, o)
	for _, x := range t.indexes {
		if (x.partial == "" || condition != "") && startsWith(x.columns, columns[:enough]) {
			return event.Fine(setting, x.name, needs)
		}
	}
	quoted := make([]string, len(columns))
	for i, c := range columns {
		quoted[i] = QuoteIdent(c)
	}
	ddl := "CREATE INDEX CONCURRENTLY ON " + t.SQL() + " (" + strings.Join(quoted, ", ") + ")" + condition
	if t.partitioned() { // concurrently is not possible there
		ddl = strings.Replace(ddl, " CONCURRENTLY", "", 1)
	}
	return event.Warned(setting, "missing", needs, ddl+": without it each claim sorts all rows that are pending")
}

func startsWith(columns, prefix []string) bool {
	return len(columns) >= len(prefix) && slices.Equal(columns[:len(prefix)], prefix)
}

// claimOrder are the columns of the index that claims read in its order, how many
// of them are enough (rows that are equal in those are few, and soon sorted), and
// its condition, all as init makes it.
func claimOrder(t *tableInfo, o Options) (columns []string, enough int, condition string) {
	there := func(names ...string) {
		for _, name := range names {
			if _, ok := t.column(name); ok {
				columns = append(columns, name)
			}
		}
	}
	col := o.Schema.Columns
	switch o.Schema.Preset {
	case event.Basic:
		condition = " WHERE " + QuoteIdent(col[event.PublishedAt]) + " IS NULL"
		if there("seq"); len(columns) == 0 {
			there(col[event.OccurredAt], col[event.RowID])
		}
	case event.Debezium:
		there(col[event.OccurredAt], col[event.RowID])
	default:
		there(col[event.Route], col[event.Status], col[event.AvailableAt])
		enough = len(columns)
		there(col[event.HLC], "created_at", col[event.RowID])
	}
	return columns, min(enough+1, len(columns)), condition
}
