package slot

import "github.com/walrelay/walrelay/event"

// basicDDL is the smallest table that does the job; a partial index keeps the
// search for pending rows as small as their number.
func basicDDL(t Table, o Options) []string {
	ddl := []string{createTable(t, o, []columnDDL{
		mapped(event.RowID, "uuid PRIMARY KEY DEFAULT gen_random_uuid()"),
		mapped(event.EventID, "uuid NOT NULL"), // the same column, unless it was renamed apart
		plain("seq", "bigint GENERATED ALWAYS AS IDENTITY"),
		mapped(event.Route, "text NOT NULL"),
		mapped(event.Key, "text NOT NULL"),
		mapped(event.Type, "text NOT NULL"),
		mapped(event.Payload, "jsonb NOT NULL"),
		mapped(event.OccurredAt, "timestamptz NOT NULL DEFAULT now()"),
		mapped(event.PublishedAt, "timestamptz"),
	})}
	if published := o.Schema.Columns[event.PublishedAt]; published != "" {
		ddl = append(ddl, "CREATE INDEX ON "+t.SQL()+` ("seq") WHERE `+QuoteIdent(published)+" IS NULL")
	}
	return ddl
}
