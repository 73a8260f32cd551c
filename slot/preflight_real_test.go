package slot_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/slot"
	"github.com/walrelay/walrelay/test/pgserver"
)

// found is the finding of a setting, by the beginning of its name.
func found(t *testing.T, o slot.Options, setting string) event.Finding {
	t.Helper()
	findings := slot.Check(t.Context(), o)
	for _, f := range findings {
		if (f.Err == nil) != f.OK || !f.OK && f.Remedy == "" || f.Warning && f.Remedy == "" {
			t.Errorf("finding %+v lacks something", f)
		}
	}
	for _, f := range findings {
		if strings.HasPrefix(f.Setting, setting) {
			return f
		}
	}
	t.Fatalf("nothing is said of %s: %+v", setting, findings)
	return event.Finding{}
}

// refused asserts that check names the setting, its present value and the need.
func refused(t *testing.T, o slot.Options, setting, is string, anchor event.Anchor) {
	t.Helper()
	f := found(t, o, setting)
	if f.OK || f.Err.Anchor != anchor || !strings.Contains(f.Is, is) || f.Needs == "" {
		t.Fatalf("%s: %+v", setting, f)
	}
}

// TestEachMissingPreconditionIsOneLineWithSettingValueAndNeed is case C26.
func TestEachMissingPreconditionIsOneLineWithSettingValueAndNeed(t *testing.T) {
	t.Parallel()
	t.Run("wal_level", func(t *testing.T) {
		t.Parallel()
		for _, v := range []pgserver.Version{pgserver.V15, pgserver.V18} {
			o := fresh(t, pgserver.Start(t, pgserver.Options{Version: v, Settings: map[string]string{"wal_level": "replica"}}), event.Forze)
			refused(t, o, "wal_level", "replica", slot.AnchorWALLevel)
			_, err := slot.Apply(t.Context(), connect(t, o), o)
			halted(t, err, slot.AnchorWALLevel, "replica", "logical")
			_, err = slot.VerifyForStream(t.Context(), connect(t, o), o)
			halted(t, err, slot.AnchorWALLevel)
		}
	})
	t.Run("no free slot", func(t *testing.T) {
		t.Parallel()
		o := fresh(t, pgserver.Start(t, pgserver.Options{Version: pgserver.V17, Settings: map[string]string{"max_replication_slots": "1"}}), event.Forze)
		conn := connect(t, o)
		run(t, conn, "select pg_create_logical_replication_slot('other', 'pgoutput')")
		refused(t, o, "max_replication_slots", "1 of 1", slot.AnchorNoFreeSlot)
		_, err := slot.Apply(t.Context(), conn, o)
		halted(t, err, slot.AnchorNoFreeSlot, "max_replication_slots")
		if ask[bool](t, conn, "select to_regclass('public.outbox') is not null") {
			t.Error("init began although it could not end")
		}
		// What the server itself says is understood too.
		_, err = conn.Exec(t.Context(), "select pg_create_logical_replication_slot('another', 'pgoutput')")
		halted(t, slot.Classify(err), slot.AnchorNoFreeSlot)
	})
	t.Run("no free sender", func(t *testing.T) {
		t.Parallel()
		for _, v := range []pgserver.Version{pgserver.V15, pgserver.V18} {
			o := fresh(t, pgserver.Start(t, pgserver.Options{Version: v, Settings: map[string]string{"max_wal_senders": "1"}}), event.Forze)
			taken, err := slot.ConnectReplication(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			_, err = slot.ConnectReplication(t.Context(), o)
			halted(t, err, slot.AnchorNoFreeSender)
			refused(t, o, "max_wal_senders", "1 of 1", slot.AnchorNoFreeSender)
			_ = taken.Close(context.Background())
		}
	})
	t.Run("no right to replicate", func(t *testing.T) {
		t.Parallel()
		everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
			o := fresh(t, srv, event.Forze)
			apply(t, connect(t, o), o)
			role, password := srv.NewRole(t, "")
			o.DSN = srv.URLAs(role, password, ask[string](t, connect(t, o), "select current_database()::text"))
			refused(t, o, "role", role, slot.AnchorRights)
			_, err := slot.VerifyForStream(t.Context(), connect(t, o), o)
			halted(t, err, slot.AnchorRights, role)
			_, err = slot.ConnectReplication(t.Context(), o)
			halted(t, err, slot.AnchorRights)
			refused(t, o, "bookkeeping", "no right", slot.AnchorRights)
		})
	})
	t.Run("wrong credentials", func(t *testing.T) {
		t.Parallel()
		srv := pgserver.Shared(t, pgserver.V18)
		o := fresh(t, srv, event.Forze)
		o.DSN = srv.URLAs("postgres", "Tr0ub4dor", "postgres")
		refused(t, o, "server", "no connection", slot.AnchorCredentials)
		_, err := slot.Connect(t.Context(), o)
		halted(t, err, slot.AnchorCredentials)
		if strings.Contains(fmt.Sprintf("%v %+v", err, err), "Tr0ub4dor") {
			t.Errorf("the password is in %v", err)
		}
		cause := errors.Unwrap(err)
		if class := event.ClassOf(slot.Classify(cause, slot.Scene{Settled: true})); class != event.Retry {
			t.Errorf("a rotated password is %v, after the source has worked", class)
		}
	})
	t.Run("database", func(t *testing.T) {
		t.Parallel()
		srv := pgserver.Shared(t, pgserver.V15)
		o := fresh(t, srv, event.Forze)
		o.DSN = srv.URL("nowhere")
		refused(t, o, "server", "no connection", slot.AnchorDatabase)
	})
	t.Run("nobody listens", func(t *testing.T) {
		t.Parallel()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		o := slot.Options{Source: "s", DSN: "postgres://u:p@" + l.Addr().String() + "/db", Messages: []string{"m"}}.WithDefaults()
		_ = l.Close()
		f := found(t, o, "server")
		if f.OK || f.Err.Class != event.Retry || f.Err.Anchor != slot.AnchorUnreachable {
			t.Fatalf("got %+v", f)
		}
	})
}

// TestPublicationThatWouldHideEventsIsRefusedWhenItChanges is cases C09 and C27.
func TestPublicationThatWouldHideEventsIsRefusedWhenItChanges(t *testing.T) {
	t.Parallel()
	changes := []struct {
		sql   string
		words []string
	}{
		{"alter publication %s set table outbox (id, payload)", []string{"leaves out column", "event_id", "public.outbox"}},
		{"alter publication %s set table outbox where (tenant_id is not null)", []string{"row filter", "tenant_id", "public.outbox"}},
		{"alter publication %s set (publish = 'update')", []string{"does not publish inserts"}},
		{"alter publication %s drop table outbox", []string{"does not contain table public.outbox"}},
		{"drop publication %s", []string{"does not exist"}},
	}
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		for _, c := range changes {
			o := fresh(t, srv, event.Forze)
			conn := connect(t, o)
			apply(t, conn, o)
			if err := slot.CheckPublication(t.Context(), conn, o); err != nil {
				t.Fatal(err)
			}
			run(t, conn, fmt.Sprintf(c.sql, o.Publication))
			words := append(c.words, o.Publication)
			halted(t, slot.CheckPublication(t.Context(), conn, o), slot.AnchorPublication, words...)
			_, err := slot.VerifyForStream(t.Context(), conn, o)
			halted(t, err, slot.AnchorPublication, words...)
			refused(t, o, "publication", "", slot.AnchorPublication)
			if strings.Contains(c.sql, "where") {
				o.AllowRowFilter = true
				if err := slot.CheckPublication(t.Context(), conn, o); err != nil {
					t.Errorf("the filter was allowed: %v", err)
				}
				if f := found(t, o, "publication"); !f.OK || !f.Warning || !strings.Contains(f.Is, "tenant_id") {
					t.Errorf("an allowed filter is not mentioned: %+v", f)
				}
			}
			run(t, conn, "select pg_drop_replication_slot($1)", o.Slot)
		}
	})
}

func TestWiderPublicationsServeToo(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		for _, made := range []string{"for all tables", "for tables in schema public", "for table outbox, only neighbour with (publish = 'insert, truncate')"} {
			o := fresh(t, srv, event.Basic)
			conn := connect(t, o)
			apply(t, conn, o)
			run(t, conn, "create table neighbour (id int primary key)")
			run(t, conn, "drop publication "+o.Publication)
			run(t, conn, "create publication "+o.Publication+" "+made)
			if err := slot.CheckPublication(t.Context(), conn, o); err != nil {
				t.Errorf("%s: %v", made, err)
			}
			if f := found(t, o, "publication"); !f.OK || !f.Warning {
				t.Errorf("%s costs the server time, and nobody says so: %+v", made, f)
			}
			run(t, conn, "select pg_drop_replication_slot($1)", o.Slot)
		}
	})
}

// TestPartitionedTableIsReadThroughItsRoot is case C14.
func TestPartitionedTableIsReadThroughItsRoot(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		o := fresh(t, srv, event.Basic)
		conn := connect(t, o)
		run(t, conn, `create table outbox (id uuid not null, aggregate_type text, aggregate_id text, event_type text, payload jsonb,
			created_at timestamptz not null, published_at timestamptz) partition by range (created_at)`)
		run(t, conn, `create table outbox_2026_09 partition of outbox for values from ('2026-09-01') to ('2026-10-01')`)
		run(t, conn, `create table "Outbox.2026_10" partition of outbox for values from ('2026-10-01') to ('2026-11-01')`)
		apply(t, conn, o)
		facts, err := slot.VerifyForStream(t.Context(), conn, o)
		if err != nil {
			t.Fatal(err)
		}
		want := []slot.Table{{Schema: "public", Name: "Outbox.2026_10"}, {Schema: "public", Name: "outbox_2026_09"}}
		if !slices.Equal(facts.LeafTables, want) {
			t.Errorf("leaves are %v", facts.LeafTables)
		}
		run(t, conn, `create table outbox_2026_11 partition of outbox for values from ('2026-11-01') to ('2026-12-01')`)
		if err := slot.CheckPublication(t.Context(), conn, o); err != nil {
			t.Errorf("a partition that was added later: %v", err)
		}
		run(t, conn, "drop publication "+o.Publication)
		run(t, conn, "create publication "+o.Publication+" for table outbox with (publish = 'insert')")
		halted(t, slot.CheckPublication(t.Context(), conn, o), slot.AnchorPublication, "public.outbox", "publish_via_partition_root")
		if _, err := slot.Plan(t.Context(), conn, o); err == nil {
			t.Error("init takes a publication of leaves for complete")
		}
	})
}

func TestTableThatTheLogCannotBringIsRefused(t *testing.T) {
	t.Parallel()
	srv := pgserver.Shared(t, pgserver.V18)
	for _, c := range []struct{ sql, want string }{
		{"alter table outbox set unlogged", "unlogged"},
		{"alter table outbox rename to elsewhere", "does not exist"},
		{"alter table outbox rename to elsewhere; create view outbox as select * from elsewhere", "not a table"},
		{"alter table outbox alter payload type bytea using null; alter table outbox alter payload type int using 1", "type int4"},
		{"alter table outbox alter available_at type timestamp", "type timestamp"},
		{"create domain stamp as text; alter table outbox alter hlc type stamp", "type text"},
	} {
		o := fresh(t, srv, event.Forze)
		conn := connect(t, o)
		apply(t, conn, o)
		run(t, conn, "drop publication "+o.Publication)
		for sql := range strings.SplitSeq(c.sql, "; ") {
			run(t, conn, sql)
		}
		_, err := slot.VerifyForStream(t.Context(), conn, o)
		halted(t, err, slot.AnchorTable, c.want)
		refused(t, o, "table", c.want, slot.AnchorTable)
		run(t, conn, "select pg_drop_replication_slot($1)", o.Slot)
	}
}

// Rows in the log may be older than the change, and whole: they are read first.
func TestColumnThatIsMissingNowIsSaidButDoesNotKeepFromReading(t *testing.T) {
	t.Parallel()
	o := fresh(t, pgserver.Shared(t, pgserver.V18), event.Forze)
	conn := connect(t, o)
	apply(t, conn, o)
	run(t, conn, "alter table outbox rename payload to body")
	facts, err := slot.VerifyForStream(t.Context(), conn, o)
	if err != nil {
		t.Fatal(err)
	}
	if facts.Lacking == nil {
		t.Fatal("the missing column is not said")
	}
	halted(t, facts.Lacking, slot.AnchorTable, "no column payload")
	refused(t, o, "table", "no column payload", slot.AnchorTable)
	run(t, conn, "select pg_drop_replication_slot($1)", o.Slot)
}

func TestReadOnlyDefaultIsNotTakenForAStandby(t *testing.T) {
	t.Parallel()
	srv := pgserver.Shared(t, pgserver.V17)
	o := fresh(t, srv, event.Forze)
	srv.Exec(t, "alter database "+ask[string](t, connect(t, o), "select current_database()::text")+" set default_transaction_read_only = on")
	apply(t, connect(t, o), o)
}

// TestPoolerIsNamed plays what PgBouncer before 1.23 answers to a replication connection.
func TestPoolerIsNamed(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			backend := pgproto3.NewBackend(conn, conn)
			if _, err := backend.ReceiveStartupMessage(); err == nil {
				backend.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "08P01", Message: "unsupported startup parameter: replication"})
				_ = backend.Flush()
			}
			_ = conn.Close()
		}
	}()
	o := slot.Options{Source: "s", DSN: "postgres://u:p@" + l.Addr().String() + "/db", Messages: []string{"m"}}.WithDefaults()
	_, err = slot.ConnectReplication(t.Context(), o)
	halted(t, err, slot.AnchorPooler, "pooler", "Postgres server itself")
}

// TestServerThatCannotProveItsNameIsRefused is issue 52 of the peers.
func TestServerThatCannotProveItsNameIsRefused(t *testing.T) {
	t.Parallel()
	srv := pgserver.Start(t, pgserver.Options{Version: pgserver.V18, TLS: true})
	base := srv.URL("postgres")
	with := func(params string) slot.Options {
		url := base
		if i := strings.IndexByte(url, '?'); i >= 0 {
			url = url[:i]
		}
		return slot.Options{Source: "s", DSN: url + "?" + params, Messages: []string{"m"}}.WithDefaults()
	}
	good := with("sslmode=verify-full&sslrootcert=" + srv.CAFile())
	if !ask[bool](t, connect(t, good), "select ssl from pg_stat_ssl where pid = pg_backend_pid()") {
		t.Error("the connection is not encrypted")
	}
	replication, err := slot.ConnectReplication(t.Context(), good)
	if err != nil {
		t.Fatal(err)
	}
	_ = replication.Close(context.Background())
	_, err = slot.Connect(t.Context(), with("sslmode=verify-full&sslrootcert=system"))
	halted(t, err, slot.AnchorTLS)
	plain := pgserver.Shared(t, pgserver.V18)
	base = plain.URL("postgres")
	_, err = slot.Connect(t.Context(), with("sslmode=require"))
	halted(t, err, slot.AnchorTLS, "offers no TLS")
}

func TestOutputFormsAreOursWhateverTheDatabaseSays(t *testing.T) {
	t.Parallel()
	o := fresh(t, pgserver.Shared(t, pgserver.V18), event.Forze)
	admin := connect(t, o)
	db := ask[string](t, admin, "select current_database()::text")
	for setting, value := range map[string]string{
		"timezone": "Asia/Tokyo", "datestyle": "German", "intervalstyle": "iso_8601", "extra_float_digits": "0", "bytea_output": "escape",
		"default_transaction_isolation": "serializable", "statement_timeout": "1", "search_path": "''",
	} {
		run(t, admin, "alter database "+db+" set "+setting+" = '"+value+"'")
	}
	conn, err := slot.ConnectReplication(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	results, err := conn.Exec(t.Context(), `select '2026-01-02 03:04:05+00'::timestamptz::text || ' ' || '\x00ff'::bytea::text || ' ' || '1 day'::interval::text`).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if got := string(results[0].Rows[0][0]); got != `2026-01-02 03:04:05+00 \x00ff 1 day` {
		t.Errorf("the server prints %s", got)
	}
	// And everything works with a search path that finds nothing.
	apply(t, connect(t, o), o)
	ordinary := connect(t, o)
	if got := ask[string](t, ordinary, "select current_setting('default_transaction_isolation')"); got != "read committed" {
		t.Errorf("the isolation level is %s", got)
	}
	if _, err := slot.VerifyForStream(t.Context(), ordinary, o); err != nil {
		t.Error(err)
	}
}
