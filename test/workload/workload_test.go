package workload

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/pgserver"
)

func TestMain(m *testing.M) { pgserver.Main(m) }

// stored reads the table back: event id to sequence number.
func stored(t *testing.T, conn *pgx.Conn, idColumn string) map[string]int64 {
	t.Helper()
	rows, err := conn.Query(context.Background(), "select "+idColumn+"::text, payload from public.outbox")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int64{}
	var id string
	var raw []byte
	_, err = pgx.ForEachRow(rows, []any{&id, &raw}, func() error {
		var body struct{ Seq int64 }
		err := json.Unmarshal(raw, &body)
		found[id] = body.Seq
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// compare fails the test unless exactly the committed events are stored.
func compare(t *testing.T, committed []oracle.Commit, found map[string]int64) {
	t.Helper()
	if len(committed) != len(found) || len(found) == 0 {
		t.Errorf("%d events said to be committed, %d rows found", len(committed), len(found))
	}
	for _, c := range committed {
		if seq, ok := found[c.EventID]; !ok || seq != c.Seq {
			t.Errorf("event %s (%s number %d): row found %t, its number %d", c.EventID, c.Key, c.Seq, ok, seq)
			return
		}
	}
}

func TestCommittedIsWhatTheTableHolds(t *testing.T) {
	t.Parallel()
	for schema, create := range map[Schema]func(testing.TB, *pgx.Conn, string){
		Forze: CreateForze, Debezium: CreateDebezium, Basic: CreateBasic,
	} {
		t.Run(string(schema), func(t *testing.T) {
			t.Parallel()
			srv := pgserver.Shared(t, pgserver.V18)
			db := srv.NewDatabase(t)
			conn := srv.Conn(t, db)
			create(t, conn, "public.outbox")
			l := New(t, Options{DSN: srv.URL(db), Table: "public.outbox", Schema: schema, Transactions: 200, Routes: []string{"a", "b"}})
			l.Run(t.Context(), t)
			compare(t, l.Committed(), stored(t, conn, schema.columns()[0]))
			if s := l.Stats(); s.RolledBack == 0 || s.Broken != 0 || s.Transactions+s.RolledBack != 200 {
				t.Errorf("of 200 transactions: %+v", s)
			}
		})
	}
}

// The order of rows in the log is that of commits: decoding with a slot shows it.
func TestSequenceOfAKeyFollowsTheLog(t *testing.T) {
	t.Parallel()
	srv := pgserver.Start(t, pgserver.Options{})
	conn := srv.Conn(t)
	CreateForze(t, conn, "public.outbox")
	// Column lists come in table order, whatever is written here.
	srv.Exec(t, "create publication p for table public.outbox (id, ordering_key, hlc) with (publish = 'insert')")
	srv.Exec(t, "select pg_create_logical_replication_slot('s', 'pgoutput')")
	committed := Run(t.Context(), t, Options{DSN: srv.URL("postgres"), Table: "public.outbox", Transactions: 300, Keys: 5})

	rows, err := conn.Query(t.Context(), "select data from pg_logical_slot_get_binary_changes('s', null, null, 'proto_version', '1', 'publication_names', 'p')")
	if err != nil {
		t.Fatal(err)
	}
	newest := map[string]string{}
	inserts := 0
	var data []byte
	if _, err := pgx.ForEachRow(rows, []any{&data}, func() error {
		if data[0] != 'I' {
			return nil
		}
		inserts++
		values := tupleTexts(data)
		id, key, hlc := values[0], values[1], values[2]
		// hlc ends in the sequence number, and begins with a time that a slow writer may
		// have read early: compare the last 16 bits.
		if before, ok := newest[key]; ok && low16(hlc) <= low16(before) {
			t.Errorf("row %s: number %d of %s after number %d", id, low16(hlc), key, low16(before))
		}
		newest[key] = hlc
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if inserts != len(committed) {
		t.Errorf("%d inserts in the log, %d committed", inserts, len(committed))
	}
}

func TestRestartsOfTheServerLeaveNoDoubt(t *testing.T) {
	t.Parallel()
	srv := pgserver.Start(t, pgserver.Options{})
	CreateForze(t, srv.Conn(t), "public.outbox")
	l := New(t, Options{DSN: srv.URL("postgres"), Table: "public.outbox"})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.Run(ctx, t)
	}()
	until := func(n int) {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for l.Stats().Transactions < n {
			select {
			case <-tick.C:
			case <-done:
				t.Fatal("the writers gave up")
			}
		}
	}
	for i, down := range []func(){
		func() { srv.Restart(t, pgserver.Fast) },
		func() { srv.Restart(t, pgserver.Immediate) },
		func() { srv.Kill(t); srv.StartAgain(t) },
		func() { srv.Crash(t) },
	} {
		until(200 * (i + 1))
		down()
	}
	until(1000)
	cancel()
	<-done
	compare(t, l.Committed(), stored(t, srv.Conn(t), "event_id"))
	if s := l.Stats(); s.Broken == 0 {
		t.Errorf("four restarts broke no transaction: %+v", s)
	}
}
