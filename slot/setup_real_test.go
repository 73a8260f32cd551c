package slot_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/slot"
	"github.com/walrelay/walrelay/test/pgserver"
)

// fresh are options for a new, empty database.
func fresh(t *testing.T, srv *pgserver.Server, preset event.Preset) slot.Options {
	t.Helper()
	schema, err := event.NewSchema(preset, nil)
	if err != nil {
		t.Fatal(err)
	}
	db := srv.NewDatabase(t)
	return slot.Options{
		Source: "orders", DSN: srv.URL(db), Slot: "w_" + db, Schema: schema, Bookkeeping: "walrelay",
		Tables: []slot.Table{{Schema: "public", Name: "outbox"}},
	}.WithDefaults()
}

func connect(t *testing.T, o slot.Options) *pgx.Conn {
	t.Helper()
	conn, err := slot.Connect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func run(t *testing.T, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func ask[T any](t *testing.T, conn *pgx.Conn, sql string, args ...any) (v T) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func apply(t *testing.T, conn *pgx.Conn, o slot.Options) {
	t.Helper()
	if _, err := slot.Apply(t.Context(), conn, o); err != nil {
		t.Fatal(err)
	}
}

// halted asserts a Halt error with the anchor, a remedy, and the words in its text.
func halted(t *testing.T, err error, anchor event.Anchor, words ...string) {
	t.Helper()
	var e *event.Error
	if !errors.As(err, &e) || e.Class != event.Halt || e.Anchor != anchor || e.Remedy == "" {
		t.Fatalf("want a halt at %s, got %v", anchor, err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Fatalf("want %q in %v", w, err)
		}
	}
}

func slotsOf(t *testing.T, conn *pgx.Conn) int {
	t.Helper()
	return ask[int](t, conn, `select count(*)::int from pg_replication_slots where database = current_database()`)
}

func TestInitMakesAllOfItAndTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		for _, preset := range []event.Preset{event.Forze, event.Debezium, event.Basic} {
			o := fresh(t, srv, preset)
			conn := connect(t, o)
			steps, err := slot.Plan(t.Context(), conn, o)
			if err != nil || steps.Done() {
				t.Fatalf("%s: plan is done %v, %v", preset, steps.Done(), err)
			}
			if n := slotsOf(t, conn); n != 0 {
				t.Fatalf("planning made %d slots", n)
			}
			apply(t, conn, o)
			before := ask[string](t, conn, `select confirmed_flush_lsn::text from pg_replication_slots where slot_name = $1`, o.Slot)
			marker, err := slot.ReadMarker(t.Context(), conn, o)
			if err != nil || marker == nil || marker.Phase != event.PhaseCreated || marker.Confirmed.String() != before || marker.Publication == "" {
				t.Fatalf("%s: marker %+v, %v; slot at %s", preset, marker, err, before)
			}
			steps, err = slot.Plan(t.Context(), conn, o)
			if err != nil || !steps.Done() {
				t.Fatalf("%s: after init the plan still has %+v, %v", preset, steps, err)
			}
			apply(t, conn, o)
			if after := ask[string](t, conn, `select confirmed_flush_lsn::text from pg_replication_slots where slot_name = $1`, o.Slot); after != before {
				t.Fatalf("%s: the second init moved the slot from %s to %s", preset, before, after)
			}
			for _, f := range slot.Check(t.Context(), o) {
				if !f.OK {
					t.Errorf("%s: after init %s is %s: %v", preset, f.Setting, f.Is, f.Err)
				}
			}
			facts, err := slot.VerifyForStream(t.Context(), conn, o)
			if err != nil {
				t.Fatal(err)
			}
			start, err := slot.Judge(marker, facts)
			if err != nil || start.At != marker.Confirmed {
				t.Fatalf("%s: start %+v, %v", preset, start, err)
			}
		}
	})
}

func TestForzeTableIsTheContractsTable(t *testing.T) {
	t.Parallel()
	o := fresh(t, pgserver.Shared(t, pgserver.V18), event.Forze)
	conn := connect(t, o)
	apply(t, conn, o)
	run(t, conn, `insert into outbox (id, outbox_route, event_id, event_type, tenant_id, execution_id, correlation_id, causation_id, occurred_at,
		payload, status, created_at, attempts, available_at, ordering_key, hlc, traceparent)
		values (gen_random_uuid(), 'orders', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'created', null, null, null, null, now(), '{}', 'pending', now(), 0, null, 'k', 1, null)`)
	for what, sql := range map[string]string{
		"a state that does not exist": `update outbox set status = 'dead'`,
		"an event twice on one route": `insert into outbox (id, outbox_route, event_id, event_type, occurred_at, payload)
			values (gen_random_uuid(), 'orders', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'created', now(), '{}')`,
	} {
		if _, err := conn.Exec(t.Context(), sql); err == nil {
			t.Errorf("the table takes %s", what)
		}
	}
	published := ask[[]string](t, conn, `select attnames::text[] from pg_publication_tables where pubname = $1`, o.Publication)
	for _, column := range []string{"id", "event_id", "outbox_route", "payload", "status", "available_at", "hlc", "traceparent"} {
		if !slices.Contains(published, column) {
			t.Errorf("column %s is not published: %v", column, published)
		}
	}
	for _, column := range []string{"processing_at", "last_error", "attempts", "created_at"} {
		if slices.Contains(published, column) {
			t.Errorf("bookkeeping column %s is published", column)
		}
	}
}

// TestNamesOfAnyKindWorkTheFirstAndLaterTimes is case C10.
func TestNamesOfAnyKindWorkTheFirstAndLaterTimes(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		o := fresh(t, srv, event.Forze)
		o.Publication = `My"Pub'lication`
		o.Bookkeeping = `Wal Relay`
		o.Tables = []slot.Table{{Schema: "Sales-EU", Name: "Outbox.Order"}, {Schema: "order", Name: `say "hi"`}}
		conn := connect(t, o)
		for range 3 {
			apply(t, conn, o)
			if err := slot.CheckPublication(t.Context(), conn, o); err != nil {
				t.Fatal(err)
			}
			if _, err := slot.VerifyForStream(t.Context(), conn, o); err != nil {
				t.Fatal(err)
			}
		}
		run(t, conn, `insert into "Sales-EU"."Outbox.Order" (id, outbox_route, event_id, event_type, occurred_at, payload)
			values (gen_random_uuid(), 'orders', gen_random_uuid(), 'created', now(), '{}')`)
		n := ask[int](t, conn, `select count(*)::int from pg_logical_slot_peek_binary_changes($1, null, null, 'proto_version', '1', 'publication_names', $2)`,
			o.Slot, slot.QuoteIdent(o.Publication))
		if n < 4 { // begin, relation, insert, commit
			t.Errorf("the slot shows %d messages for one row", n)
		}
		if err := (&slot.Options{Source: "s", DSN: o.DSN, Slot: "MySlot", Publication: "p", Messages: []string{"m"}}).Validate(); err == nil {
			t.Error("a slot name with capitals is accepted")
		}
	})
}

func TestInitRefusesWhatExistsAndDiffers(t *testing.T) {
	t.Parallel()
	srv := pgserver.Shared(t, pgserver.V15)
	made := func(t *testing.T) (slot.Options, *pgx.Conn) {
		o := fresh(t, srv, event.Forze)
		conn := connect(t, o)
		apply(t, conn, o)
		return o, conn
	}
	t.Run("publication is gone, slot is there", func(t *testing.T) {
		t.Parallel()
		o, conn := made(t)
		run(t, conn, "drop publication "+o.Publication)
		_, err := slot.Plan(t.Context(), conn, o)
		halted(t, err, slot.AnchorPublicationOld, o.Slot, "younger")
	})
	t.Run("publication lacks a column", func(t *testing.T) {
		t.Parallel()
		o, conn := made(t)
		run(t, conn, "alter publication "+o.Publication+" set table outbox (id, event_id, payload)")
		_, err := slot.Plan(t.Context(), conn, o)
		halted(t, err, slot.AnchorPublication, "outbox_route", "public.outbox")
	})
	t.Run("slot is lost", func(t *testing.T) {
		t.Parallel()
		o, conn := made(t)
		run(t, conn, "select pg_drop_replication_slot($1)", o.Slot)
		_, err := slot.Apply(t.Context(), conn, o)
		halted(t, err, slot.AnchorSlotLost, o.Slot)
		if n := slotsOf(t, conn); n != 0 {
			t.Fatal("the lost slot was made anew in silence")
		}
		m, err := slot.ReplaceSlot(t.Context(), conn, o)
		if err != nil || m.Phase != event.PhaseCreated {
			t.Fatalf("replacing it: %+v, %v", m, err)
		}
		stored, err := slot.ReadMarker(t.Context(), conn, o)
		if err != nil || *stored != m {
			t.Fatalf("remembered %+v, %v; made %+v", stored, err, m)
		}
	})
	t.Run("slot has another plugin", func(t *testing.T) {
		t.Parallel()
		o := fresh(t, srv, event.Forze)
		conn := connect(t, o)
		run(t, conn, "select pg_create_logical_replication_slot($1, 'test_decoding')", o.Slot)
		run(t, conn, "create table outbox (like pg_class)")
		run(t, conn, "drop table outbox")
		_, err := slot.Plan(t.Context(), conn, slot.Options{
			Source: o.Source, DSN: o.DSN, Slot: o.Slot, Publication: o.Publication, Messages: []string{"m"},
		})
		halted(t, err, slot.AnchorPublicationOld)
		run(t, conn, "create publication "+o.Publication)
		_, err = slot.Plan(t.Context(), conn, slot.Options{
			Source: o.Source, DSN: o.DSN, Slot: o.Slot, Publication: o.Publication, Messages: []string{"m"},
		})
		halted(t, err, slot.AnchorSlotWrong, "test_decoding")
	})
	t.Run("table is named in another case", func(t *testing.T) {
		t.Parallel()
		o, conn := made(t)
		o.Tables = []slot.Table{{Schema: "public", Name: "Outbox"}}
		_, err := slot.Plan(t.Context(), conn, o)
		halted(t, err, slot.AnchorTable, `public."Outbox"`, "public.outbox")
	})
}

func TestMessagesAloneNeedAnEmptyPublication(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		o := fresh(t, srv, event.Forze)
		o.Tables, o.Messages, o.Schema = nil, []string{"outbox"}, event.Schema{}
		conn := connect(t, o)
		_, err := slot.VerifyForStream(t.Context(), conn, o)
		halted(t, err, slot.AnchorNotInitialised)
		apply(t, conn, o)
		if _, err := slot.VerifyForStream(t.Context(), conn, o); err != nil {
			t.Fatal(err)
		}
	})
}

func TestPrintedScriptIsAllThatARelayOfLeastRightsNeeds(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		o := fresh(t, srv, event.Forze)
		db := ask[string](t, connect(t, o), "select current_database()::text")
		o.Role = "relay_" + db
		var script strings.Builder
		if err := slot.Print(&script, o); err != nil {
			t.Fatal(err)
		}
		// The slot must not be made in a transaction that has written: one statement at a time.
		admin := connect(t, o)
		for statement := range strings.SplitSeq(script.String(), ";\n") {
			if strings.TrimSpace(withoutComments(statement)) != "" {
				run(t, admin, statement)
			}
		}
		run(t, admin, "alter role "+o.Role+" password 'x y:/%#?'")
		o.DSN = srv.URLAs(o.Role, "x y:/%#?", db)
		for _, f := range slot.Check(t.Context(), o) {
			if !f.OK {
				t.Errorf("%s is %s: %v", f.Setting, f.Is, f.Err)
			}
		}
		relay := connect(t, o)
		m, err := slot.ReadMarker(t.Context(), relay, o)
		if err != nil || m == nil {
			t.Fatalf("marker %+v, %v", m, err)
		}
		m.Confirmed++
		if err := slot.WriteMarker(t.Context(), relay, o, *m); err != nil {
			t.Fatal(err)
		}
		if ask[bool](t, relay, `select rolsuper or rolcreaterole or rolcreatedb from pg_roles where rolname = current_user`) {
			t.Error("the role has more rights than it needs")
		}
		run(t, relay, `update outbox set status = 'published'`)
		if _, err := relay.Exec(t.Context(), `insert into outbox (id) values (gen_random_uuid())`); err == nil {
			t.Error("the relay may write events")
		}
	})
}

func withoutComments(sql string) string {
	var b strings.Builder
	for line := range strings.Lines(sql) {
		if !strings.HasPrefix(line, "--") {
			b.WriteString(line)
		}
	}
	return b.String()
}

func TestPublicationOfAllTablesHoldsATableThatIsStillToBeMade(t *testing.T) {
	t.Parallel()
	o := fresh(t, pgserver.Shared(t, pgserver.V18), event.Forze)
	conn := connect(t, o)
	run(t, conn, "create publication "+o.Publication+" for all tables")
	apply(t, conn, o)
	if _, err := slot.VerifyForStream(t.Context(), conn, o); err != nil {
		t.Error(err)
	}
	run(t, conn, "select pg_drop_replication_slot($1)", o.Slot)
}
