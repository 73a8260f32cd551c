package slot

import (
	"strings"

	"github.com/walrelay/walrelay/event"
)

// columnDDL is one column of a preset's table. A column that carries a field
// takes the name that the schema gives the field.
type columnDDL struct {
	name  string
	field event.Field
	named bool // name stands; there is no field
	rest  string
}

func mapped(f event.Field, rest string) columnDDL { return columnDDL{field: f, rest: rest} }
func plain(name, rest string) columnDDL           { return columnDDL{name: name, named: true, rest: rest} }

func (c columnDDL) in(s event.Schema) string {
	if c.named {
		return c.name
	}
	return s.Columns[c.field]
}

// forzeDDL is the relation of the forze outbox, with its two optional columns and
// the claim index that goes with stamps.
func forzeDDL(t Table, o Options) []string {
	s := o.Schema
	q := func(f event.Field) string { return QuoteIdent(s.Columns[f]) }
	status := q(event.Status)
	return []string{
		createTable(t, o, []columnDDL{
			mapped(event.RowID, "uuid PRIMARY KEY"),
			mapped(event.Route, "text NOT NULL"),
			mapped(event.EventID, "uuid NOT NULL"),
			mapped(event.Type, "text NOT NULL"),
			mapped(event.Tenant, "uuid"),
			mapped(event.Execution, "uuid"),
			mapped(event.Correlation, "uuid"),
			mapped(event.Causation, "uuid"),
			mapped(event.OccurredAt, "timestamptz NOT NULL"),
			mapped(event.Payload, "jsonb NOT NULL"),
			mapped(event.Status, "text NOT NULL DEFAULT 'pending' CHECK ("+status+" IN ('pending', 'processing', 'published', 'failed'))"),
			plain("created_at", "timestamptz NOT NULL DEFAULT now()"),
			mapped(event.PublishedAt, "timestamptz"),
			plain("processing_at", "timestamptz"),
			mapped(event.AvailableAt, "timestamptz"),
			plain("last_error", "text"),
			plain("attempts", "int NOT NULL DEFAULT 0"),
			mapped(event.Key, "text"),
			mapped(event.Traceparent, "text"),
			mapped(event.HLC, "bigint"),
		}, "UNIQUE ("+q(event.Route)+", "+q(event.EventID)+")"),
		"CREATE INDEX ON " + t.SQL() + " (" + strings.Join([]string{
			q(event.Route), status, q(event.AvailableAt), q(event.HLC), `"created_at"`, q(event.RowID),
		}, ", ") + ")",
		"CREATE TABLE IF NOT EXISTS " + Table{t.Schema, "hlc_checkpoint"}.SQL() + " (\n\tnode_key text PRIMARY KEY,\n\thlc bigint NOT NULL\n)",
	}
}

// createTable writes the statement; extra columns that the preset does not know are text.
func createTable(t Table, o Options, columns []columnDDL, constraints ...string) string {
	var lines []string
	have := map[string]bool{}
	for _, c := range columns {
		name := c.in(o.Schema)
		if name == "" || have[name] {
			continue
		}
		have[name] = true
		lines = append(lines, QuoteIdent(name)+" "+c.rest)
	}
	for _, name := range o.ExtraColumns {
		if !have[name] {
			have[name] = true
			lines = append(lines, QuoteIdent(name)+" text")
		}
	}
	lines = append(lines, constraints...)
	return "CREATE TABLE " + t.SQL() + " (\n\t" + strings.Join(lines, ",\n\t") + "\n)"
}
