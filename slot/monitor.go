package slot

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/event"
)

// ReadSlot asks the server what it knows of a slot. A slot that is gone is a gap.
func ReadSlot(ctx context.Context, db DB, slot string) (event.SlotReport, error) {
	r := event.SlotReport{Slot: slot}
	scene := Scene{Doing: "reading slot " + slot, Slot: slot}
	var head, sent, confirmed, restart *string
	rows, err := db.Query(ctx, `
		select s.active, coalesce(s.wal_status, ''),
		       coalesce(j ->> 'invalidation_reason',
		                case when s.wal_status = 'lost' then 'wal_removed'
		                     when (j ->> 'conflicting')::boolean then 'conflict' else '' end),
		       coalesce(pg_catalog.pg_wal_lsn_diff(h.head, s.restart_lsn), 0)::bigint, coalesce(s.safe_wal_size, -1),
		       h.head::text,
		       (select r.sent_lsn::text from pg_catalog.pg_stat_replication r where r.pid = s.active_pid),
		       s.confirmed_flush_lsn::text, s.restart_lsn::text,
		       coalesce(t.spill_txns, 0), coalesce(t.spill_bytes, 0)
		  from pg_catalog.pg_replication_slots s
		  left join pg_catalog.pg_stat_replication_slots t on t.slot_name = s.slot_name,
		       pg_catalog.to_jsonb(s) j,
		       (select case when not pg_catalog.pg_is_in_recovery() then pg_catalog.pg_current_wal_flush_lsn() end as head) h
		 where s.slot_name = $1`, slot)
	if err != nil {
		return r, Classify(err, scene)
	}
	found := false
	_, err = pgx.ForEachRow(rows, []any{
		&r.Active, &r.WALStatus, &r.Invalidation, &r.RetainedBytes, &r.SafeBytes, &head, &sent, &confirmed, &restart, &r.SpillTxns, &r.SpillBytes,
	}, func() error {
		found = true
		return nil
	})
	if err != nil {
		return r, Classify(err, scene)
	}
	if !found {
		return r, gap(AnchorSlotLost, fmt.Sprintf("slot %s is gone", slot), remedyNewSlot)
	}
	var p parser
	r.ServerHead, r.SentLSN, r.ConfirmedLSN, r.RestartLSN = p.lsn(head), p.lsn(sent), p.lsn(confirmed), p.lsn(restart)
	r.At = time.Now()
	return r, p.err
}

// Holder is the process that uses the slot, and what it calls itself; PID 0: nobody.
func Holder(ctx context.Context, db DB, slot string) (pid int, application string, err error) {
	f, err := readSlotFacts(ctx, db, slot)
	if err != nil {
		return 0, "", Classify(err, Scene{Doing: "looking for the holder of slot " + slot, Slot: slot})
	}
	return f.ActivePID, f.ActiveApp, nil
}
