package tablecases

// C75 Major upgrade.
// Source: instantdb/instant#2809, estuary/flow#2716.
// Ideal: another cluster with the same tables behind the same address is noticed by
// its system identifier; the old position is not used; catching up from the table
// loses nothing.

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/test/pgserver"
)

func TestC75AnotherClusterBehindTheSameAddressIsNoticed(t *testing.T) {
	t.Parallel()
	old := pgserver.Start(t, pgserver.Options{Version: pgserver.V15})
	fresh := pgserver.Start(t, pgserver.Options{Version: pgserver.V18})
	address := pgserver.NewForward(t, old.Port())
	tb := logged(t, old, "stop")
	tb.Init(t)
	tb.ranOnce(t)
	tb.fill(t, 100, 10, 10)

	fresh.Exec(t, "create database "+tb.Database)
	restore(t, tb, fresh)
	tb.PG = fresh
	tb.URL = address.URL(t, fresh.URL(tb.Database))
	address.Flip(fresh.Port())

	before := systemIdentifier(t, old)
	r := tb.halts(t, before, systemIdentifier(t, fresh))
	stopHalted(t, r)
	tb.onGap("catch_up")
	r = tb.catchesUp(t)
	stopAll(t, r)
	tb.judge(t, 0)
}

func systemIdentifier(t *testing.T, s *pgserver.Server) (id string) {
	t.Helper()
	if err := s.Conn(t).QueryRow(context.Background(), "select system_identifier::text from pg_control_system()").Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id
}

// restore has the tables of the house and their rows in another cluster, as
// pg_dump and pg_restore do; a slot is no part of a dump.
func restore(t *testing.T, tb *table, into *pgserver.Server) {
	t.Helper()
	from, to := tb.PG.Conn(t, tb.Database), into.Conn(t, tb.Database)
	copied := *tb.House
	copied.PG, copied.URL = into, ""
	copied.Init(t)
	ctx := context.Background()
	if _, err := to.Exec(ctx, "select pg_drop_replication_slot($1)", tb.Slot); err != nil {
		t.Fatal(err)
	}
	rows, err := from.Query(ctx, `select quote_ident(schemaname) || '.' || quote_ident(tablename) from pg_tables where schemaname in ('public', 'walrelay')`)
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		var dump bytes.Buffer
		if _, err := from.PgConn().CopyTo(ctx, &dump, "copy (select * from "+name+") to stdout"); err != nil {
			t.Fatal(err)
		}
		if _, err := to.Exec(ctx, "delete from "+name); err != nil {
			t.Fatal(err)
		}
		if _, err := to.PgConn().CopyFrom(ctx, io.Reader(&dump), "copy "+name+" from stdin"); err != nil {
			t.Fatalf("restore %s: %v", name, err)
		}
	}
}
