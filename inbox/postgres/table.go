package postgres

import (
	"fmt"

	"github.com/jackc/pgx/v5"
)

// DDL is the SQL that makes the table, public.inbox when nil, in two statements
// that may be repeated. The second makes the index that Forget reads; a table that
// others made works without it, and takes longer to forget.
func DDL(table pgx.Identifier) string {
	table = orDefault(table)
	index := pgx.Identifier{table[len(table)-1] + "_processed_at"}
	return fmt.Sprintf(`create table if not exists %s (
    inbox_route  text not null,
    message_id   text not null,
    processed_at timestamptz not null default now(),
    primary key (inbox_route, message_id)
);
create index if not exists %s on %[1]s (inbox_route, processed_at);
`, table.Sanitize(), index.Sanitize())
}

func orDefault(table pgx.Identifier) pgx.Identifier {
	if len(table) == 0 {
		return pgx.Identifier{"public", "inbox"}
	}
	return table
}

// statements are the SQL of one table.
type statements struct{ mark, forget string }

func newStatements(table pgx.Identifier) statements {
	name := orDefault(table).Sanitize()
	return statements{
		// The key is named so that a table without it is an error and not an inbox that
		// finds everything new.
		mark: `insert into ` + name + ` (inbox_route, message_id, processed_at) values ($1, $2, now())
			on conflict (inbox_route, message_id) do nothing`,
		// Skip what a consumer or another Forget holds; the oldest first.
		forget: `delete from ` + name + ` where (inbox_route, message_id) in (
			select inbox_route, message_id from ` + name + `
			where inbox_route = $1 and processed_at < now() - $2::bigint * interval '1 microsecond'
			order by processed_at limit $3 for update skip locked)`,
	}
}
