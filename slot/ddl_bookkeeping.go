package slot

import (
	"fmt"
	"strings"

	"github.com/walrelay/walrelay/event"
)

// tableDDL makes an outbox table of the schema's preset, its schema included.
func tableDDL(t Table, o Options) []string {
	ddl := []string{"CREATE SCHEMA IF NOT EXISTS " + QuoteIdent(t.Schema)}
	switch o.Schema.Preset {
	case event.Debezium:
		return append(ddl, debeziumDDL(t, o)...)
	case event.Basic:
		return append(ddl, basicDDL(t, o)...)
	default:
		return append(ddl, forzeDDL(t, o)...)
	}
}

// publicationDDL publishes inserts of the tables, under the names of the roots.
// Without tables (messages only) the publication is empty, but must be there.
func publicationDDL(tables []tableInfo, o Options) string {
	var ddl strings.Builder
	ddl.WriteString("CREATE PUBLICATION " + QuoteIdent(o.Publication))
	for i := range tables {
		sep := ",\n\t"
		if i == 0 {
			sep = " FOR TABLE\n\t"
		}
		ddl.WriteString(sep + publishedAs(&tables[i], o))
	}
	return ddl.String() + "\n\tWITH (publish = 'insert', publish_via_partition_root = true)"
}

// slotDDL makes the slot. Its last argument is there since Postgres 17.
func slotDDL(o Options, version int) string {
	args := fmt.Sprintf("%s, 'pgoutput', false, false", QuoteLiteral(o.Slot))
	if o.Failover && version >= 170000 {
		args += ", true"
	}
	return "SELECT lsn::text FROM pg_catalog.pg_create_logical_replication_slot(" + args + ")"
}

// grantDDL is all that the relay's role needs: to read the log, to look up, claim,
// mark and clean up rows, and its own bookkeeping.
func grantDDL(o Options) []string {
	role := QuoteIdent(o.Role)
	var ddl []string
	seen := map[string]bool{}
	for _, t := range o.Tables {
		if !seen[t.Schema] {
			seen[t.Schema] = true
			ddl = append(ddl, fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %s", QuoteIdent(t.Schema), role))
		}
		ddl = append(ddl, fmt.Sprintf("GRANT SELECT, UPDATE, DELETE ON %s TO %s", t.SQL(), role))
	}
	if o.keepsBooks() {
		schema := QuoteIdent(o.Bookkeeping)
		ddl = append(ddl,
			fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %s", schema, role),
			fmt.Sprintf("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %s TO %s", schema, role))
	}
	if o.Ordered {
		ddl = append(ddl, "GRANT pg_read_all_stats TO "+role)
	}
	return ddl
}

// markerSQL writes the marker of a slot that was just made, inside the server;
// for the printed script.
func markerSQL(o Options) string {
	return fmt.Sprintf(`INSERT INTO %s (name, system_identifier, timeline, slot, confirmed_lsn, phase, updated_at)
SELECT %s, c.system_identifier::text,
       ('x' || substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int,
       s.slot_name, s.confirmed_flush_lsn, %s, pg_catalog.clock_timestamp()
  FROM pg_catalog.pg_replication_slots s, pg_catalog.pg_control_system() c
 WHERE s.slot_name = %s`, o.MarkerTable().SQL(), QuoteLiteral(o.Marker), QuoteLiteral(string(event.PhaseCreated)), QuoteLiteral(o.Slot))
}
