package slot

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/walrelay/walrelay/event"
)

func (v *inventory) setting(name string) int64 {
	n, _ := strconv.ParseInt(v.settings[name], 10, 64)
	return n
}

// hostFindings is about the server as a whole, whatever is read from it.
func (v *inventory) hostFindings() []event.Finding {
	version := v.settings["server_version"]
	if v.unusable {
		return []event.Finding{event.Failing("server_version", version, "15 or later", precondition(AnchorVersion,
			fmt.Sprintf("the server is PostgreSQL %s; walrelay needs 15 or later", version), "upgrade the server"))}
	}
	findings := []event.Finding{event.Fine("server_version", version, "15 or later")}
	if v.InRecovery {
		// Not a mistake by itself: during a failover it passes.
		return append(findings, event.Failing("pg_is_in_recovery", "true", "false", retry(AnchorStandby,
			"the server is a standby", "wait for the failover to end, or give the primary's address")))
	}
	return append(findings, event.Fine("pg_is_in_recovery", "false", "false"))
}

// serverFindings is about the server as one whose log is read.
func (v *inventory) serverFindings() []event.Finding {
	findings := v.hostFindings()
	if v.unusable || v.InRecovery {
		return findings
	}
	level := v.settings["wal_level"]
	if level != "logical" {
		return append(findings, event.Failing("wal_level", level, "logical", precondition(AnchorWALLevel,
			fmt.Sprintf("wal_level is %s and must be logical", level), "ALTER SYSTEM SET wal_level = logical, and restart the server")))
	}
	return append(findings, event.Fine("wal_level", level, "logical"))
}

// capacityFindings is about what runs out: slots and walsenders.
func (v *inventory) capacityFindings() []event.Finding {
	slots, senders := v.setting("max_replication_slots"), v.setting("max_wal_senders")
	is := fmt.Sprintf("%d of %d in use", v.slotsUsed, slots)
	findings := make([]event.Finding, 0, 2)
	if !v.Slot.Exists && int64(v.slotsUsed) >= slots {
		findings = append(findings, event.Failing("max_replication_slots", is, "one free", precondition(AnchorNoFreeSlot,
			fmt.Sprintf("all %d replication slots of the server are in use", slots),
			fmt.Sprintf("ALTER SYSTEM SET max_replication_slots = %d and restart the server, or drop slots that nobody uses", slots+4))))
	} else {
		findings = append(findings, event.Fine("max_replication_slots", is, "one free, or ours there"))
	}
	is = fmt.Sprintf("%d of %d in use", v.sendersUsed, senders)
	if !v.Slot.Active && int64(v.sendersUsed) >= senders {
		return append(findings, event.Failing("max_wal_senders", is, "one free", precondition(AnchorNoFreeSender,
			fmt.Sprintf("all %d WAL senders of the server are in use", senders),
			fmt.Sprintf("ALTER SYSTEM SET max_wal_senders = %d and restart the server, or end replication connections that nobody uses", senders+4))))
	}
	return append(findings, event.Fine("max_wal_senders", is, "one free, or ours running"))
}

func (v *inventory) roleFindings() []event.Finding {
	if !v.role.replicates {
		return []event.Finding{event.Failing("role", v.role.name+" without REPLICATION", "REPLICATION", precondition(AnchorRights,
			fmt.Sprintf("role %s may not replicate", quoteIfNeeded(v.role.name)),
			fmt.Sprintf("ALTER ROLE %s REPLICATION (on Amazon RDS: GRANT rds_replication TO it)", QuoteIdent(v.role.name))))}
	}
	return []event.Finding{event.Fine("role", v.role.name+" with REPLICATION", "REPLICATION")}
}

func (v *inventory) tableFindings(o Options) []event.Finding {
	var findings []event.Finding
	for i := range v.tables {
		t := &v.tables[i]
		setting, needs := "table "+t.String(), "the columns of schema "+string(o.Schema.Preset)
		switch e := t.judge(o); {
		case e != nil:
			findings = append(findings, event.Explained(setting, "", needs, e))
		case len(t.strangeTriggers(o)) > 0:
			findings = append(findings, event.Warned(setting, "fits; has trigger "+strings.Join(t.strangeTriggers(o), ", "), needs+", no triggers",
				"make sure that the triggers do not undo what walrelay writes to a row, nor write to the table"))
		default:
			findings = append(findings, event.Fine(setting, "fits", needs))
		}
	}
	return findings
}

func (v *inventory) publicationFinding(o Options) event.Finding {
	p := &v.publication
	setting, needs := "publication "+quoteIfNeeded(p.name), "inserts of every table, all mapped columns, all rows"
	if e := p.judge(v.tables, o); e != nil {
		return event.Explained(setting, "", needs, e)
	}
	if len(p.others) > 0 {
		return event.Warned(setting, "also publishes "+strings.Join(p.others, ", "), "publish = 'insert'",
			fmt.Sprintf("ALTER PUBLICATION %s SET (publish = 'insert'): walrelay reads inserts only, and the rest costs the server time", QuoteIdent(p.name)))
	}
	for _, t := range o.Tables {
		if f := p.tables[t].filter; f != "" {
			return event.Warned(setting, fmt.Sprintf("rows of %s are filtered by %s", t, f), "all rows", "none, if that is what allow_row_filter was set for")
		}
	}
	return event.Fine(setting, "complete", needs)
}

func (v *inventory) bookkeepingFindings(o Options) []event.Finding {
	if !o.keepsBooks() {
		return []event.Finding{event.Warned("bookkeeping", "none", "a schema of walrelay's own",
			"leave bookkeeping out of the configuration: without it nothing tells a first start from a lost slot")}
	}
	var findings []event.Finding
	for _, name := range o.books() {
		t, b := o.book(name), v.books[name]
		setting, needs := "bookkeeping "+t.String(), "there, readable and writable"
		switch {
		case !b.exists:
			findings = append(findings, event.Failing(setting, "missing", needs, precondition(AnchorNotInitialised,
				fmt.Sprintf("table %s does not exist", t), "run 'walrelay init': it makes what is missing and leaves what is there")))
		case !b.writable:
			findings = append(findings, event.Failing(setting, "no right", needs, precondition(AnchorRights,
				fmt.Sprintf("role %s may not read and write table %s", quoteIfNeeded(v.role.name), t),
				fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %s; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %s TO %s",
					QuoteIdent(o.Bookkeeping), QuoteIdent(v.role.name), QuoteIdent(o.Bookkeeping), QuoteIdent(v.role.name)))))
		default:
			findings = append(findings, event.Fine(setting, "there", needs))
		}
	}
	return findings
}

// slotFindings is about what the slot is, not about where it stands.
func (v *inventory) slotFindings(o Options) []event.Finding {
	s := v.Slot
	setting, needs := "slot "+s.Name, "persistent, pgoutput, of this database"
	wrong := func(is, what, remedy string) []event.Finding {
		return []event.Finding{event.Failing(setting, is, needs, precondition(AnchorSlotWrong, fmt.Sprintf("slot %s ", s.Name)+what, remedy))}
	}
	const another = "choose another slot name for this source, or drop that slot and run 'walrelay init'"
	switch {
	case !s.Exists:
		return nil // positionFinding says it
	case s.Plugin == "":
		return wrong("physical", "is a physical slot", another)
	case s.Plugin != "pgoutput":
		return wrong(s.Plugin, fmt.Sprintf("uses the plugin %s and must use pgoutput", s.Plugin), another)
	case s.Database != v.role.database:
		return wrong("of database "+s.Database, fmt.Sprintf("belongs to database %s, the connection to %s", s.Database, v.role.database), another)
	case s.Temporary:
		return wrong("temporary", "is temporary: it goes with its connection", another)
	}
	is := "there, " + s.WALStatus
	if s.Active {
		is += fmt.Sprintf(", active for PID %d (%s)", s.ActivePID, s.ActiveApp)
	}
	switch {
	case o.Failover && !s.Failover && v.ServerVersion >= 170000: // older servers have no such slots
		return []event.Finding{event.Warned(setting, is+", without failover", needs+", failover",
			fmt.Sprintf("stop the relay and run ALTER_REPLICATION_SLOT %s (FAILOVER true) on a replication connection", s.Name))}
	case s.WALStatus == "unreserved":
		return []event.Finding{event.Warned(setting, is, needs, "the server is about to invalidate the slot: start the relay, or raise max_slot_wal_keep_size")}
	}
	return []event.Finding{event.Fine(setting, is, needs)}
}

// positionFinding is what Judge would say at a start now.
func (v *inventory) positionFinding(marker *Marker) []event.Finding {
	const setting, needs = "position", "slot and marker belong together"
	start, err := Judge(marker, v.Facts)
	var e *event.Error
	if errors.As(err, &e) {
		return []event.Finding{event.Failing(setting, e.What, needs, e)}
	}
	return []event.Finding{event.Fine(setting, fmt.Sprintf("%s: %s", start.At, start.Note), needs)}
}

// adviceFindings never fail: they are settings that decide how a bad day ends.
func (v *inventory) adviceFindings(o Options) []event.Finding {
	var findings []event.Finding
	if ms := v.setting("wal_sender_timeout"); ms == 0 {
		findings = append(findings, event.Warned("wal_sender_timeout", "off", "10 s to 5 min", "set it: without it the slot of a relay that vanished stays taken"))
	} else {
		findings = append(findings, event.Fine("wal_sender_timeout", v.WalSenderTimeout.String(), "10 s to 5 min"))
	}
	if keep := v.setting("max_slot_wal_keep_size"); keep < 0 {
		findings = append(findings, event.Warned("max_slot_wal_keep_size", "no limit", "a limit that the disk can bear",
			"set it, or watch the disk: a relay that stays away holds back WAL without end; with a limit the slot is lost instead, and the relay halts"))
	} else {
		findings = append(findings, event.Fine("max_slot_wal_keep_size", fmt.Sprintf("%d MB", keep), "a limit that the disk can bear"))
	}
	findings = append(findings, event.Fine("logical_decoding_work_mem", fmt.Sprintf("%d kB", v.setting("logical_decoding_work_mem")), "above the size of usual transactions"))
	if standbys, known := v.settings["synchronized_standby_slots"]; known && o.Failover {
		if standbys == "" {
			findings = append(findings, event.Warned("synchronized_standby_slots", "empty", "the physical slots of the standbys",
				"name them: otherwise the slot may be ahead of a standby that is promoted"))
		} else {
			findings = append(findings, event.Fine("synchronized_standby_slots", standbys, "the physical slots of the standbys"))
		}
	}
	return findings
}
