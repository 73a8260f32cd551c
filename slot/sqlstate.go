package slot

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/walrelay/walrelay/event"
)

// atLSN finds the place in the context that output plugins add to an error.
var atLSN = regexp.MustCompile(`associated LSN ([0-9A-F]+/[0-9A-F]+)`)

// classifyServer judges by SQLSTATE (errcodes.txt of Postgres) and, where one
// code stands for several troubles, by the text. Messages are matched in
// English; with another lc_messages the code's general answer holds. nil: the
// error is not the server's.
func classifyServer(err error, s Scene) *event.Error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return nil
	}
	has := func(text string) bool { return strings.Contains(pg.Message, text) }
	switch pg.Code {
	case "08P01":
		// PgBouncer and its like; 1.23 and later let the parameter through.
		if has("startup parameter") || has("pgbouncer") {
			return pooler()
		}
	case "26000", "42P05": // a prepared statement is missing or there twice: not our backend
		return pooler()
	case "28P01", "28000":
		return s.passing(precondition(AnchorCredentials, "the server refused the login",
			"check user and password of the source, and that pg_hba.conf lets this role in from here"))
	case "3D000":
		return precondition(AnchorDatabase, "the database does not exist", "check the database name in the connection string")
	case "42501":
		return precondition(AnchorRights, "the role lacks a right", "grant it as 'walrelay init --print' shows: LOGIN and REPLICATION for the role, and rights on the tables")
	case "55006":
		if has("is active for PID") || s.Slot != "" && has(s.Slot) {
			return slotActive(s.Slot, pg.Message)
		}
		return retry(AnchorServer, "an object is in use", "wait, or end the session that uses it")
	case "42704":
		return missingObject(pg, s)
	case "55000":
		return wrongState(pg, s)
	case "53400":
		if has("replication slots") {
			return precondition(AnchorNoFreeSlot, "all replication slots of the server are in use",
				"raise max_replication_slots and restart the server, or drop slots that nobody uses")
		}
	case "53300":
		if has("max_wal_senders") || has("standby connections") {
			return s.passing(precondition(AnchorNoFreeSender, "all WAL senders of the server are in use",
				"raise max_wal_senders and restart the server, or end replication connections that nobody uses"))
		}
		return retry(AnchorUnreachable, "the server has no free connection", "raise max_connections, or keep other clients from using them up")
	case "58P01":
		return gap(AnchorSlotInvalid, fmt.Sprintf("the log that slot %s needs has been removed", s.Slot),
			remedyNewSlot)
	case "42P01", "3F000":
		return precondition(AnchorNotInitialised, "a table or schema is missing", "run 'walrelay init'")
	case "25006":
		return retry(AnchorStandby, "the server takes no writes: it is a standby", "wait for the failover to end, or give the primary's address")
	case "40001", "40P01", "55P03", "57014", "25P03", "57P05":
		return retry(AnchorServer, "the statement was cut short", "nothing; it is tried again")
	case "57P01", "57P02", "57P03":
		return retry(AnchorUnreachable, "the server is starting or stopping", "wait for the server")
	}
	switch class(pg.Code) {
	case "08":
		return retry(AnchorUnreachable, "the connection broke", "check the server's log")
	case "53", "58":
		return retry(AnchorServer, "the server is short of something", "check the server's disk and memory")
	}
	return &event.Error{
		Class: event.Halt, Anchor: AnchorServer, What: "the server reported an error that walrelay does not know",
		Remedy: "read the server's message and its log",
	}
}

func class(code string) string { return code[:min(2, len(code))] }

func missingObject(pg *pgconn.PgError, s Scene) *event.Error {
	if strings.Contains(pg.Message, "replication slot") {
		return gap(AnchorSlotLost, fmt.Sprintf("slot %s is not there", s.Slot),
			remedyNewSlot)
	}
	if !strings.Contains(pg.Message, "publication") {
		return precondition(AnchorNotInitialised, "an object is missing", "run 'walrelay init'")
	}
	where := "a row that is read now"
	if m := atLSN.FindStringSubmatch(pg.Where); m != nil {
		where = "the row at " + m[1]
	}
	// The plugin looks at the catalog as it was when the row was written.
	return precondition(AnchorPublicationOld,
		fmt.Sprintf("publication %s did not exist when %s was written; creating it now does not help that row", s.Publication, where),
		fmt.Sprintf("slot %s cannot see a publication that is younger than it: make sure that the publication exists; ", s.Slot)+remedyNewSlot)
}

func wrongState(pg *pgconn.PgError, s Scene) *event.Error {
	has := func(text string) bool {
		return strings.Contains(pg.Message, text) || strings.Contains(pg.Detail, text)
	}
	switch {
	case has("wal_level"):
		return precondition(AnchorWALLevel, "wal_level is below logical", "set wal_level = logical and restart the server")
	case has("in recovery"), has("being synchronized"), has("synced from the primary"):
		return retry(AnchorStandby, "the server is a standby", "wait for the failover to end, or give the primary's address")
	case has("can no longer"), has("invalidated"), has("obsolete replication slot"):
		why := pg.Detail
		if why == "" {
			why = pg.Message
		}
		return gap(AnchorSlotInvalid, fmt.Sprintf("slot %s was invalidated by the server (%s)", s.Slot, strings.TrimSuffix(why, ".")),
			remedyNewSlot+"; see max_slot_wal_keep_size")
	case has("not created in this database"), has("was not created in this"):
		return precondition(AnchorSlotWrong, fmt.Sprintf("slot %s belongs to another database", s.Slot),
			"choose another slot name, or connect to the slot's database")
	}
	return &event.Error{
		Class: event.Halt, Anchor: AnchorServer, What: "the server is not in the state for this",
		Remedy: "read the server's message and its log",
	}
}
