package pgserver

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestMain(m *testing.M) { Main(m) }

func query[T any](t *testing.T, conn *pgx.Conn, sql string) (value T) {
	t.Helper()
	if err := conn.QueryRow(context.Background(), sql).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

func TestEachVersionDecodesLogically(t *testing.T) {
	t.Parallel()
	for _, v := range Versions {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			s := Shared(t, v)
			conn := s.Conn(t, s.NewDatabase(t))
			if got := query[string](t, conn, "show server_version"); !strings.HasPrefix(v.Release(), got+".") {
				t.Errorf("server says version %s, pinned is %s", got, v.Release())
			}
			slot := "s_" + token()
			if got := query[string](t, conn, "select slot_name from pg_create_logical_replication_slot('"+slot+"', 'pgoutput')"); got != slot {
				t.Errorf("slot is called %q", got)
			}
		})
	}
}

func TestServersHaveDifferentSystemIdentifiers(t *testing.T) {
	t.Parallel()
	a, b := Start(t, Options{Version: V15}), Start(t, Options{Version: V15})
	const sql = "select system_identifier from pg_control_system()"
	if x, y := query[int64](t, a.Conn(t), sql), query[int64](t, b.Conn(t), sql); x == y {
		t.Errorf("both servers are %d", x)
	}
}

func TestCommittedRowsSurviveEveryWayDown(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{})
	s.Exec(t, "create table kept (n int)")
	ways := []struct {
		name string
		down func()
	}{
		{"fast", func() { s.Restart(t, Fast) }},
		{"smart", func() { s.Restart(t, Smart) }},
		{"immediate", func() { s.Restart(t, Immediate) }},
		{"kill", func() { s.Kill(t); s.StartAgain(t) }},
		{"crash", func() { s.Crash(t) }},
	}
	port := s.Port()
	for i, way := range ways {
		s.Exec(t, "insert into kept values ($1)", i)
		way.down()
		conn, err := pgx.Connect(t.Context(), s.URL("postgres"))
		if err != nil {
			t.Fatalf("after %s: %v", way.name, err)
		}
		if n := query[int](t, conn, "select count(*) from kept"); n != i+1 {
			t.Fatalf("after %s there are %d rows, want %d", way.name, n, i+1)
		}
		_ = conn.Close(t.Context()) // a smart shutdown would wait for it
	}
	if s.Port() != port {
		t.Errorf("port moved from %d to %d", port, s.Port())
	}
}

func TestPausedServerIsSilentUntilContinued(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{})
	conn := s.Conn(t)
	s.Pause(t)
	answered := make(chan error, 1)
	go func() {
		_, err := conn.Exec(context.Background(), "select 1")
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Fatalf("a frozen server answered: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	s.Continue(t)
	if err := <-answered; err != nil {
		t.Errorf("after Continue: %v", err)
	}
}

func TestEndOfAFrozenServerLeavesNoProcess(t *testing.T) {
	t.Parallel()
	s, err := start(Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.running()
	if err != nil {
		t.Fatal(err)
	}
	s.Pause(t)
	pids := append(children(p.PID()), p.PID())
	if len(pids) < 4 {
		t.Fatalf("only %d processes found: %v", len(pids), pids)
	}
	s.close()
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d is left", pid)
		}
	}
	if _, err := os.Stat(s.dir); !os.IsNotExist(err) {
		t.Errorf("folder is left: %v", err)
	}
}

func TestStopReturnsAtTheCallersLimit(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{})
	s.Conn(t) // a smart shutdown waits for it
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if took, err := s.StopContext(ctx, Smart); err == nil {
		t.Errorf("a smart shutdown with an open session ended after %s", took)
	}
}

func TestTLSVerifiesTheServerAndTheClient(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{TLS: true, HBA: "hostssl all clerk 127.0.0.1/32 cert\nhostnossl all all 127.0.0.1/32 reject"})
	if !query[bool](t, s.Conn(t), "select ssl from pg_stat_ssl where pid = pg_backend_pid()") {
		t.Error("the session is not encrypted")
	}
	s.Exec(t, "create role clerk login")
	certFile, keyFile := s.ClientCert(t, "clerk")
	conn, err := pgx.Connect(t.Context(), s.URLAs("clerk", "", "postgres")+"&sslcert="+certFile+"&sslkey="+keyFile)
	if err != nil {
		t.Fatalf("with a client certificate: %v", err)
	}
	_ = conn.Close(t.Context())
	plain := strings.Replace(s.URL("postgres"), "verify-full", "disable", 1)
	if conn, err := pgx.Connect(t.Context(), plain); err == nil {
		_ = conn.Close(t.Context())
		t.Error("an unencrypted session was let in")
	}
}

func TestSettingsAndRolesReachTheServer(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{Settings: map[string]string{"wal_sender_timeout": "3s"}, SegmentMB: 1})
	conn := s.Conn(t)
	if got := query[string](t, conn, "show wal_sender_timeout"); got != "3s" {
		t.Errorf("wal_sender_timeout is %s", got)
	}
	if got := query[string](t, conn, "show wal_segment_size"); got != "1MB" {
		t.Errorf("wal_segment_size is %s", got)
	}
	role, password := s.NewRole(t, "replication")
	repl, err := pgx.Connect(t.Context(), s.URLAs(role, password, "postgres")+"&replication=database&default_query_exec_mode=simple_protocol")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = repl.Close(context.Background()) }()
	if _, err := repl.Exec(t.Context(), "IDENTIFY_SYSTEM"); err != nil {
		t.Errorf("a role with the attribute replication: %v", err)
	}
}

func TestSharedDatabaseIsDroppedWithItsActiveSlot(t *testing.T) {
	t.Parallel()
	s := Shared(t, V18)
	name := s.NewDatabase(t)
	slot := "s_" + token()
	s.ExecIn(t, name, "create publication p for all tables")
	s.ExecIn(t, name, "select pg_create_logical_replication_slot($1, 'pgoutput')", slot)
	repl, err := pgx.Connect(t.Context(), s.URL(name)+"&replication=database&default_query_exec_mode=simple_protocol")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = repl.Close(context.Background()) }()
	stream := repl.PgConn().Exec(t.Context(), "START_REPLICATION SLOT "+slot+" LOGICAL 0/0 (proto_version '1', publication_names 'p')")
	defer func() { _ = stream.Close() }()
	conn := s.Conn(t)
	for !query[bool](t, conn, "select active from pg_replication_slots where slot_name = '"+slot+"'") {
	}
	if err := s.dropDatabase(name); err != nil {
		t.Error(err)
	}
}
