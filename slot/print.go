package slot

import (
	"fmt"
	"io"
	"strings"
)

// Print writes everything that init makes as one SQL script, for people whose
// database is not walrelay's to change. It asks no server: the outbox tables are
// written out as the preset has them, and the publication names the columns that
// they have there. Without Options.Role the role is called walrelay.
//
// The script is meant for an empty database and for reading; where tables exist,
// leave their part out and adjust the publication's column lists.
func Print(w io.Writer, o Options) error {
	if o.Role == "" {
		o.Role = "walrelay"
	}
	s := script{w: w}
	s.comment("walrelay init for source %s (schema %s)", o.Source, o.Schema.Preset)
	s.comment("Run it as a superuser or the owner of the database, in the database of the source.")
	rights := " LOGIN REPLICATION"
	if o.polls() {
		rights = " LOGIN"
	} else {
		s.comment("The server needs wal_level = logical (ALTER SYSTEM SET wal_level = logical; then restart it).")
	}
	s.section("The role. Set its password with \\password %s in psql.", o.Role)
	s.statement("CREATE ROLE " + QuoteIdent(o.Role) + rights)
	tables := make([]tableInfo, 0, len(o.Tables))
	for _, t := range o.Tables {
		s.section("Outbox table %s. Leave this out where the table exists.", t)
		for _, sql := range tableDDL(t, o) {
			s.statement(sql)
		}
		tables = append(tables, plannedTable(t, o))
	}
	if o.keepsBooks() {
		s.section("walrelay's own bookkeeping.")
		for i, name := range bookNames {
			ddl := bookDDL(o, name)
			if i > 0 {
				ddl = ddl[1:] // the schema, again
			}
			for _, sql := range ddl {
				s.statement(sql)
			}
		}
	}
	if o.wakes() {
		s.section("Inserts wake the relay (poll.notify).")
		s.statement(notifierDDL(o))
		for _, t := range o.Tables {
			s.statement(wakeUpDDL(t, o))
		}
	}
	if !o.polls() {
		s.section("The publication. It must be older than the slot.")
		s.statement(publicationDDL(tables, o))
	}
	s.section("What the role may do.")
	for _, sql := range grantDDL(o) {
		s.statement(sql)
	}
	if !o.polls() {
		s.section("The slot. From here on the server keeps WAL until walrelay has read it.")
		s.statement(slotDDL(o, printedVersion))
		if o.writesMarker() {
			s.statement(markerSQL(o))
		}
	}
	return s.err
}

// printedVersion: the script cannot ask; failover slots are asked for on purpose
// and need 17.
const printedVersion = 170000

type script struct {
	w        io.Writer
	sections int
	err      error
}

func (s *script) write(text string) {
	if s.err == nil {
		_, s.err = io.WriteString(s.w, text)
	}
}

func (s *script) comment(format string, a ...any) {
	// A line break in a name would end the comment.
	s.write("-- " + strings.Join(strings.Fields(fmt.Sprintf(format, a...)), " ") + "\n")
}

func (s *script) section(format string, a ...any) {
	s.write("\n")
	s.sections++
	s.comment("%d. "+format, append([]any{s.sections}, a...)...)
}

func (s *script) statement(sql string) { s.write(sql + ";\n") }
