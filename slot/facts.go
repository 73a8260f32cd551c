package slot

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/walrelay/walrelay/event"
)

// DB is an ordinary connection, a transaction or a pool.
type DB interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Facts are what a server says of itself and of our slot at one moment.
type Facts struct {
	// SystemID is the system identifier: one per initdb, shared by its physical copies.
	SystemID string
	// Timeline grows by each promotion and each restore to a point in time.
	Timeline int32
	// ServerVersion is server_version_num, 150019 for 15.19.
	ServerVersion int
	// InRecovery: the server is a standby. The positions below are then zero.
	InRecovery bool
	FlushLSN   event.LSN
	InsertLSN  event.LSN
	// ShutdownCheckpoint is the start of the shutdown checkpoint's record, where
	// the newest checkpoint is one; else zero.
	ShutdownCheckpoint event.LSN
	// SegmentBytes is the size of one WAL segment.
	SegmentBytes int64
	// WalSenderTimeout is this role's setting; zero: none.
	WalSenderTimeout time.Duration
	Slot             SlotFacts
	// LeafTables are the partitions of the partitioned tables among Options.Tables.
	// Rows may carry a leaf's name, namely those that were written before the
	// publication was set to publish via the root.
	LeafTables []Table
	// Lacking is a required column that a table does not have now: rows written from
	// now on will stop the stream, those in the log may be older and whole.
	Lacking *event.Error
}

// SlotFacts are a row of pg_replication_slots.
type SlotFacts struct {
	Name      string
	Exists    bool
	Plugin    string
	Database  string
	Temporary bool
	Active    bool
	ActivePID int
	// ActiveApp is the application_name of the holder.
	ActiveApp string
	Confirmed event.LSN
	Restart   event.LSN
	// WALStatus is reserved, extended, unreserved or lost.
	WALStatus string
	// Invalidation is the server's reason (17 and later; before, "wal_removed" or
	// "conflict" are told from the other columns); empty: the slot is usable.
	Invalidation string
	Failover     bool
	Synced       bool
	SafeBytes    int64 // -1: no limit is set
}

// readFacts asks for everything but LeafTables, which come with the tables.
func readFacts(ctx context.Context, db DB, slot string) (Facts, error) {
	var f Facts
	var flush, insert, checkpoint, redo, timeline *string
	var timeoutMillis int64
	err := db.QueryRow(ctx, `
		select s.system_identifier::text,
		       pg_catalog.current_setting('server_version_num')::int,
		       r.recovering,
		       case when not r.recovering then pg_catalog.pg_current_wal_flush_lsn()::text end,
		       case when not r.recovering then pg_catalog.pg_current_wal_insert_lsn()::text end,
		       case when not r.recovering then substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn()), 1, 8) end,
		       c.checkpoint_lsn::text, c.redo_lsn::text,
		       (select setting::bigint from pg_catalog.pg_settings where name = 'wal_sender_timeout'),
		       (select setting::bigint from pg_catalog.pg_settings where name = 'wal_segment_size')
		  from pg_catalog.pg_control_system() s, pg_catalog.pg_control_checkpoint() c,
		       (select pg_catalog.pg_is_in_recovery() as recovering) r`).
		Scan(&f.SystemID, &f.ServerVersion, &f.InRecovery, &flush, &insert, &timeline, &checkpoint, &redo, &timeoutMillis, &f.SegmentBytes)
	if err != nil {
		return Facts{}, err
	}
	f.WalSenderTimeout = time.Duration(timeoutMillis) * time.Millisecond
	var p parser
	f.FlushLSN, f.InsertLSN = p.lsn(flush), p.lsn(insert)
	f.Timeline = p.hex(timeline)
	// The record of a shutdown checkpoint is its own redo point; an online one
	// always has records between the two (running transactions, since 18 the redo
	// record itself).
	if at := p.lsn(checkpoint); at == p.lsn(redo) {
		f.ShutdownCheckpoint = at
	}
	if p.err != nil {
		return Facts{}, p.err
	}
	f.Slot, err = readSlotFacts(ctx, db, slot)
	return f, err
}

func readSlotFacts(ctx context.Context, db DB, slot string) (SlotFacts, error) {
	f := SlotFacts{Name: slot}
	var confirmed, restart *string
	// to_jsonb lets one statement serve all versions: a column that a version lacks is null.
	rows, err := db.Query(ctx, `
		select coalesce(s.plugin::text, ''), coalesce(s.database::text, ''), s.temporary, s.active, coalesce(s.active_pid, 0),
		       coalesce((select a.application_name from pg_catalog.pg_stat_activity a where a.pid = s.active_pid), ''),
		       s.confirmed_flush_lsn::text, s.restart_lsn::text, coalesce(s.wal_status, ''),
		       coalesce(j ->> 'invalidation_reason',
		                case when s.wal_status = 'lost' then 'wal_removed'
		                     when (j ->> 'conflicting')::boolean then 'conflict' else '' end),
		       coalesce((j ->> 'failover')::boolean, false), coalesce((j ->> 'synced')::boolean, false),
		       coalesce(s.safe_wal_size, -1)
		  from pg_catalog.pg_replication_slots s, pg_catalog.to_jsonb(s) j
		 where s.slot_name = $1`, slot)
	if err != nil {
		return f, err
	}
	defer rows.Close()
	if !rows.Next() {
		return f, rows.Err()
	}
	f.Exists = true
	err = rows.Scan(&f.Plugin, &f.Database, &f.Temporary, &f.Active, &f.ActivePID, &f.ActiveApp, &confirmed, &restart,
		&f.WALStatus, &f.Invalidation, &f.Failover, &f.Synced, &f.SafeBytes)
	if err != nil {
		return f, err
	}
	var p parser
	f.Confirmed, f.Restart = p.lsn(confirmed), p.lsn(restart)
	return f, p.err
}
