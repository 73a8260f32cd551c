package slot

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/event"
)

// publicationInfo is a publication with what it publishes of every table.
type publicationInfo struct {
	name    string
	exists  bool
	inserts bool
	// others are the kinds of change besides insert that it publishes.
	others  []string
	viaRoot bool
	// everything: FOR ALL TABLES, those that are made later too.
	everything bool
	// tables is pg_publication_tables: FOR ALL TABLES and FOR TABLES IN SCHEMA are
	// resolved there, and a partitioned table stands for itself or, without
	// viaRoot, by its leaves.
	tables map[Table]publishedTable
}

type publishedTable struct {
	columns []string
	filter  string
}

func readPublication(ctx context.Context, db DB, name string) (publicationInfo, error) {
	p := publicationInfo{name: name, tables: map[Table]publishedTable{}}
	var update, del, truncate bool
	rows, err := db.Query(ctx, `
		select pubinsert, pubupdate, pubdelete, pubtruncate, pubviaroot, puballtables from pg_catalog.pg_publication where pubname = $1`, name)
	if err != nil {
		return p, err
	}
	if _, err := pgx.ForEachRow(rows, []any{&p.inserts, &update, &del, &truncate, &p.viaRoot, &p.everything}, func() error {
		p.exists = true
		return nil
	}); err != nil || !p.exists {
		return p, err
	}
	for _, kind := range []struct {
		name string
		on   bool
	}{{"update", update}, {"delete", del}, {"truncate", truncate}} {
		if kind.on {
			p.others = append(p.others, kind.name)
		}
	}
	rows, err = db.Query(ctx, `
		select schemaname::text, tablename::text, attnames::text[], coalesce(rowfilter, '')
		  from pg_catalog.pg_publication_tables where pubname = $1`, name)
	if err != nil {
		return p, err
	}
	var t Table
	var columns []string
	var filter string
	_, err = pgx.ForEachRow(rows, []any{&t.Schema, &t.Name, &columns, &filter}, func() error {
		p.tables[t] = publishedTable{columns: slices.Clone(columns), filter: filter}
		return nil
	})
	return p, err
}

// judge says what of the publication would make the stream lack events; nil: nothing.
func (p *publicationInfo) judge(tables []tableInfo, o Options) *event.Error {
	name := QuoteIdent(p.name)
	bad := func(remedy, format string, a ...any) *event.Error {
		return precondition(AnchorPublication, fmt.Sprintf("publication %s ", quoteIfNeeded(p.name))+fmt.Sprintf(format, a...), remedy)
	}
	if !p.exists {
		return bad("run 'walrelay init'; where the slot is there already, 'walrelay init --new-slot', since a slot cannot see a publication that is younger", "does not exist")
	}
	if len(tables) > 0 && !p.inserts {
		return bad(fmt.Sprintf("ALTER PUBLICATION %s SET (publish = 'insert')", name), "does not publish inserts")
	}
	for i := range tables {
		t := &tables[i]
		if !t.exists {
			continue // reported with the table itself
		}
		published, ok := p.tables[t.Table]
		if !ok {
			if !p.viaRoot && t.partitioned() && p.publishesLeaves(t) {
				return bad(fmt.Sprintf("ALTER PUBLICATION %s SET (publish_via_partition_root = true)", name),
					"publishes the partitions of table %s under their own names, so that a partition added later would be passed over", t.Table)
			}
			return bad(fmt.Sprintf("ALTER PUBLICATION %s ADD TABLE %s", name, publishedAs(t, o)), "does not contain table %s", t.Table)
		}
		var missing []string
		for _, c := range t.wanted(o) {
			if !slices.Contains(published.columns, c) {
				missing = append(missing, quoteIfNeeded(c))
			}
		}
		if len(missing) > 0 {
			return bad(fmt.Sprintf("ALTER PUBLICATION %s SET TABLE %s (name its other tables too)", name, publishedAs(t, o)),
				"leaves out column %s of table %s", strings.Join(missing, ", "), t.Table)
		}
		if published.filter != "" && !o.AllowRowFilter {
			return bad(fmt.Sprintf("ALTER PUBLICATION %s SET TABLE %s (name its other tables too), or allow the filter with allow_row_filter: true", name, publishedAs(t, o)),
				"leaves out rows of table %s: it has the row filter %s", t.Table, published.filter)
		}
	}
	return nil
}

func (p *publicationInfo) publishesLeaves(t *tableInfo) bool {
	return len(t.leaves) > 0 && !slices.ContainsFunc(t.leaves, func(l Table) bool { _, ok := p.tables[l]; return !ok })
}

// publishedAs is the table with its column list, as in CREATE PUBLICATION. The
// list leaves out what the relay itself changes and nobody reads from the log:
// every column costs the server time to print.
func publishedAs(t *tableInfo, o Options) string {
	columns := t.wanted(o)
	for i, c := range columns {
		columns[i] = QuoteIdent(c)
	}
	return fmt.Sprintf("%s (%s)", t.SQL(), strings.Join(columns, ", "))
}

// CheckPublication reads the publication again and returns a Halt error that
// names what would be missing from the stream: the publication or a table gone, a
// narrower column list, a row filter, inserts switched off. Postgres 18 reports
// none of these in the stream itself; it just goes quiet.
func CheckPublication(ctx context.Context, conn DB, o Options) error {
	p, err := readPublication(ctx, conn, o.Publication)
	if err != nil {
		return Classify(err, o.scene("reading publication "+o.Publication))
	}
	var tables []tableInfo
	for _, t := range o.Tables {
		info, err := readTable(ctx, conn, t)
		if err != nil {
			return Classify(err, o.scene("reading table "+t.String()))
		}
		if e := info.judge(o); e != nil {
			return e
		}
		tables = append(tables, info)
	}
	if e := p.judge(tables, o); e != nil {
		return e
	}
	return nil
}
