package slot

import "github.com/walrelay/walrelay/event"

// debeziumDDL is the table of Debezium's outbox event router, as its
// documentation has it. Rows may be deleted in the transaction that wrote them.
func debeziumDDL(t Table, o Options) []string {
	ddl := []string{createTable(t, o, []columnDDL{
		mapped(event.RowID, "uuid PRIMARY KEY"),
		mapped(event.EventID, "uuid NOT NULL"), // the same column, unless it was renamed apart
		mapped(event.Route, "varchar(255) NOT NULL"),
		mapped(event.Key, "varchar(255) NOT NULL"),
		mapped(event.Type, "varchar(255) NOT NULL"),
		mapped(event.OccurredAt, "timestamptz NOT NULL DEFAULT now()"),
		mapped(event.Payload, "jsonb"),
	})}
	// Rows are claimed in the order of their time, where they are claimed at all.
	if at := o.Schema.Columns[event.OccurredAt]; at != "" && o.claims() {
		ddl = append(ddl, "CREATE INDEX ON "+t.SQL()+" ("+QuoteIdent(at)+", "+QuoteIdent(o.Schema.Columns[event.RowID])+")")
	}
	return ddl
}
