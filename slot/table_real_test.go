package slot_test

import (
	"context"
	"strings"
	"testing"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/slot"
	"github.com/walrelay/walrelay/test/pgserver"
)

// polled is a source that is read from its table.
func polled(t *testing.T, srv *pgserver.Server, preset event.Preset) slot.Options {
	t.Helper()
	o := fresh(t, srv, preset)
	o.Capture, o.WriteBack, o.ClaimRows = slot.CapturePoll, slot.MarkRows, true
	if preset == event.Debezium {
		o.WriteBack = slot.DeleteRows
	}
	return o
}

// allGood demands that nothing fails, and that only what is named is warned of.
func allGood(t *testing.T, o slot.Options, warned ...string) {
	t.Helper()
next:
	for _, f := range slot.Check(t.Context(), o) {
		for _, w := range warned {
			if f.OK && strings.HasPrefix(f.Setting, w) {
				continue next
			}
		}
		if !f.OK || f.Warning {
			t.Errorf("%+v", f)
		}
	}
}

func TestPolledSourceNeedsNeitherLogicalWALNorTheRightToReplicate(t *testing.T) {
	t.Parallel()
	srv := pgserver.Start(t, pgserver.Options{Version: pgserver.V17, Settings: map[string]string{"wal_level": "replica"}})
	for _, preset := range []event.Preset{event.Forze, event.Debezium, event.Basic} {
		t.Run(string(preset), func(t *testing.T) {
			t.Parallel()
			o := polled(t, srv, preset)
			o.Notify, o.Retains = true, preset != event.Debezium
			role, password := srv.NewRole(t, "")
			o.Role = role
			admin := connect(t, o)
			apply(t, admin, o)
			if ask[bool](t, admin, "select exists (select from pg_publication) or exists (select from pg_replication_slots)") {
				t.Error("a publication or a slot was made")
			}
			o.DSN = srv.URLAs(role, password, ask[string](t, admin, "select current_database()::text"))
			allGood(t, o)
			steps, err := slot.Plan(t.Context(), connect(t, o), o)
			for _, s := range steps {
				if !s.Done() && !strings.HasPrefix(s.What, "grants") {
					t.Errorf("init would do more: %+v", s)
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := slot.VerifyForTable(t.Context(), connect(t, o), o); err != nil {
				t.Error(err)
			}
			if _, err := slot.ReplaceSlot(t.Context(), admin, o); err == nil || event.ClassOf(err) != event.Halt {
				t.Errorf("a new slot for a polled source: %v", err)
			}
		})
	}
}

func TestPolledSourceIsSetUpAndCheckedThroughAPooler(t *testing.T) {
	t.Parallel()
	srv := pgserver.Shared(t, pgserver.V15)
	pooler := srv.Pooler(t, map[string]string{"pool_mode": "transaction"})
	o := polled(t, srv, event.Forze)
	db := ask[string](t, connect(t, o), "select current_database()::text")
	o.DSN = pooler.URL(db)
	conn, err := slot.ConnectPlain(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	apply(t, conn, o)
	allGood(t, o)
	// The log cannot be read through it, and check says so by name.
	o.Capture = slot.CaptureLog
	f := found(t, o, "server")
	if f.OK || f.Err.Anchor != slot.AnchorPooler || !strings.Contains(f.Remedy, "capture: poll") {
		t.Errorf("%+v", f)
	}
}

func TestInitAddsTheTablesThatAnOlderVersionDidNotMake(t *testing.T) {
	t.Parallel()
	o := fresh(t, pgserver.Shared(t, pgserver.V16), event.Forze)
	conn := connect(t, o)
	apply(t, conn, o)
	run(t, conn, "drop table walrelay.lease, walrelay.parked")
	refused(t, o, "bookkeeping walrelay.parked", "missing", slot.AnchorNotInitialised)
	_, err := slot.VerifyForStream(t.Context(), conn, o)
	halted(t, err, slot.AnchorNotInitialised, "walrelay.lease")
	marker, err := slot.ReadMarker(t.Context(), conn, o)
	if err != nil {
		t.Fatal(err)
	}
	apply(t, conn, o)
	allGood(t, o, "sslmode", "max_slot_wal_keep_size", "slot")
	again, err := slot.ReadMarker(t.Context(), conn, o)
	if err != nil || marker == nil || again == nil || *again != *marker {
		t.Errorf("the marker was %+v and is %+v: %v", marker, again, err)
	}
	// Two events of one transaction are two, one event is one.
	const park = `insert into walrelay.parked (owner, state, event_id, route, key, topic, commit_lsn, ordinal, reason, error)
		values ('o', 'parked', 'e', 'r', 'k', 't', $1::text::pg_lsn, $2, '', '')`
	run(t, conn, park, "0/1", 0)
	run(t, conn, park, "0/1", 1)
	run(t, conn, park, nil, 0)
	if _, err := conn.Exec(t.Context(), park, nil, 0); err == nil {
		t.Error("one event was parked twice")
	}
}

func TestMissingRightOrIndexOfATableIsNamedWithWhatHelps(t *testing.T) {
	t.Parallel()
	srv := pgserver.Shared(t, pgserver.V18)
	for _, preset := range []event.Preset{event.Forze, event.Debezium, event.Basic} {
		t.Run(string(preset), func(t *testing.T) {
			t.Parallel()
			o := polled(t, srv, preset)
			o.Notify = true
			role, password := srv.NewRole(t, "")
			o.Role = role
			admin := connect(t, o)
			apply(t, admin, o)
			adminDSN := o.DSN
			o.DSN = srv.URLAs(role, password, ask[string](t, admin, "select current_database()::text"))
			allGood(t, o)

			run(t, admin, "revoke update on public.outbox from "+slot.QuoteIdent(role))
			refused(t, o, "rights on public.outbox", "without UPDATE", slot.AnchorRights)
			halted(t, slot.VerifyForTable(t.Context(), connect(t, o), o), slot.AnchorRights, "UPDATE", role)
			run(t, admin, found(t, o, "rights on").Remedy)
			allGood(t, o)

			// All but the primary key's and the unique one's.
			run(t, admin, `do $$ declare i regclass; begin for i in select x.indexrelid::regclass from pg_index x
				where x.indrelid = 'public.outbox'::regclass and not x.indisunique loop execute 'drop index ' || i; end loop; end $$`)
			run(t, admin, "drop trigger "+slot.QuoteIdent(o.NotifyChannel())+" on public.outbox")
			f := found(t, o, "claim index")
			ddl, _, _ := strings.Cut(f.Remedy, ": ")
			if !f.Warning || !strings.HasPrefix(ddl, "CREATE INDEX CONCURRENTLY") {
				t.Fatalf("%+v", f)
			}
			run(t, admin, ddl)
			if f = found(t, o, "wake-up trigger"); !f.Warning {
				t.Errorf("%+v", f)
			}
			init := o
			init.DSN = adminDSN
			apply(t, admin, init)
			allGood(t, o)
		})
	}
}

func TestInsertsWakeWhoListens(t *testing.T) {
	t.Parallel()
	srv := pgserver.Shared(t, pgserver.V16)
	o := polled(t, srv, event.Basic)
	o.Notify = true
	o.Marker = strings.Repeat("a long owner/", 9)
	conn, writer := connect(t, o), connect(t, o)
	apply(t, conn, o)
	run(t, conn, "listen "+slot.QuoteIdent(o.NotifyChannel()))
	// Whoever may insert needs no right to walrelay's schema.
	role, _ := srv.NewRole(t, "")
	run(t, writer, "grant insert on public.outbox to "+slot.QuoteIdent(role))
	run(t, writer, "set role "+slot.QuoteIdent(role))
	run(t, writer, `insert into public.outbox (id, aggregate_type, aggregate_id, event_type, payload) select gen_random_uuid(), 'r', 'k', 't', '{}' from generate_series(1, 3)`)
	n, err := conn.WaitForNotification(t.Context())
	if err != nil || n.Channel != o.NotifyChannel() || n.Payload != "" {
		t.Errorf("%+v %v", n, err)
	}
}

func TestAutoIsSetUpWithoutTheSlotWhereTheRoleMayNotReplicate(t *testing.T) {
	t.Parallel()
	srv := pgserver.Shared(t, pgserver.V17)
	o := polled(t, srv, event.Forze)
	o.Capture = slot.CaptureAuto
	role, password := srv.NewRole(t, "")
	admin := connect(t, o)
	db := ask[string](t, admin, "select current_database()::text")
	run(t, admin, "alter database "+slot.QuoteIdent(db)+" owner to "+slot.QuoteIdent(role))
	run(t, admin, "grant all on schema public to "+slot.QuoteIdent(role))
	o.DSN = srv.URLAs(role, password, db)
	conn := connect(t, o)
	steps, err := slot.Apply(t.Context(), conn, o)
	if err != nil {
		t.Fatal(err)
	}
	if last := steps[len(steps)-1]; !strings.Contains(last.Without, "REPLICATION") {
		t.Errorf("%+v", last)
	}
	for _, setting := range []string{"role", "position"} {
		if f := found(t, o, setting); !f.OK || !f.Warning || !strings.Contains(f.Remedy, "polled until then") {
			t.Errorf("%+v", f)
		}
	}
	if err := slot.VerifyForTable(t.Context(), conn, o); err != nil {
		t.Error(err)
	}
	run(t, admin, "alter role "+slot.QuoteIdent(role)+" replication")
	again := connect(t, o)
	apply(t, again, o)
	if !ask[bool](t, again, "select exists (select from pg_replication_slots where slot_name = $1)", o.Slot) {
		t.Error("no slot was made once it could be")
	}
}
