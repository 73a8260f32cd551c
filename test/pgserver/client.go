package pgserver

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Port is the TCP port on 127.0.0.1; it stays over restarts.
func (s *Server) Port() int { return s.port }

// Version is the server's major version.
func (s *Server) Version() Version { return s.opts.Version }

// URL is the superuser's connection string for the database.
func (s *Server) URL(database string) string { return s.URLAs("postgres", s.password, database) }

// URLAs is the connection string for another role.
func (s *Server) URLAs(role, password, database string) string {
	u := url.URL{Scheme: "postgres", Host: "127.0.0.1:" + strconv.Itoa(s.port)}
	query := url.Values{"sslmode": {"disable"}}
	if s.opts.TLS {
		query = url.Values{"sslmode": {"verify-full"}, "sslrootcert": {s.CAFile()}}
	}
	if s.external != "" {
		ext, err := url.Parse(s.external)
		if err != nil {
			return s.external
		}
		u, query = *ext, ext.Query()
		if role == "postgres" {
			role = ext.User.Username()
			password, _ = ext.User.Password()
		}
	}
	u.User = url.UserPassword(role, password)
	u.Path = "/" + database
	u.RawQuery = query.Encode()
	return u.String()
}

// ConnConfig is the superuser's connection configuration for the database.
func (s *Server) ConnConfig(database string) (*pgx.ConnConfig, error) {
	return pgx.ParseConfig(s.URL(database))
}

// CAFile is the certificate of the authority that signed the server's; with
// Options.TLS only.
func (s *Server) CAFile() string { return filepath.Join(s.dir, "ca.crt") }

// ClientCert issues a client certificate for the role, for HBA lines with cert,
// and returns the files of certificate and key; with Options.TLS only.
func (s *Server) ClientCert(t testing.TB, role string) (certFile, keyFile string) {
	t.Helper()
	cert, key, err := s.ca.Issue(role)
	if err != nil {
		t.Fatalf("issue a client certificate: %v", err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, role+".crt"), filepath.Join(dir, role+".key")
	for path, content := range map[string][]byte{certFile: cert, keyFile: key} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}

// Conn opens a superuser's session on the database, by default postgres, and
// closes it with the test.
func (s *Server) Conn(t testing.TB, database ...string) *pgx.Conn {
	t.Helper()
	name := "postgres"
	if len(database) > 0 {
		name = database[0]
	}
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.URL(name))
	if err != nil {
		t.Fatalf("connect to Postgres: %v", err)
	}
	t.Cleanup(func() {
		// A server that is frozen or gone must not hold up the test's end.
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	})
	return conn
}

// Exec runs one statement as superuser in the database postgres.
func (s *Server) Exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	s.ExecIn(t, "postgres", sql, args...)
}

// ExecIn runs statements as superuser in the database. Without args there may be
// several, separated by semicolons; they are then one transaction.
func (s *Server) ExecIn(t testing.TB, database, sql string, args ...any) {
	t.Helper()
	if err := s.execIn(database, sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func (s *Server) execIn(database, sql string, args ...any) error {
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.URL(database))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	if len(args) == 0 {
		_, err = conn.PgConn().Exec(ctx, sql).ReadAll()
		return err
	}
	_, err = conn.Exec(ctx, sql, args...)
	return err
}

// NewDatabase makes an empty database and returns its name. On a shared server
// it is dropped with the test, together with its slots.
func (s *Server) NewDatabase(t testing.TB) string {
	t.Helper()
	name := "db_" + token()
	s.Exec(t, "create database "+name)
	if s.shared() {
		t.Cleanup(func() {
			if err := s.dropDatabase(name); err != nil {
				t.Errorf("drop database %s after the test: %v", name, err)
			}
		})
	}
	return name
}

// dropDatabase ends what a test left behind: a slot would outlive its database's
// test and count against max_replication_slots.
func (s *Server) dropDatabase(name string) error {
	if !s.Running() {
		return nil
	}
	deadline := time.Now().Add(20 * time.Second)
	retry := time.NewTicker(20 * time.Millisecond)
	defer retry.Stop()
	for {
		err := s.execIn("postgres", fmt.Sprintf(`
			select pg_terminate_backend(active_pid) from pg_replication_slots where database = '%[1]s' and active;
			select pg_drop_replication_slot(slot_name) from pg_replication_slots where database = '%[1]s' and not active`, name))
		if err == nil {
			err = s.execIn("postgres", "drop database if exists "+name+" with (force)")
		}
		if err == nil || time.Now().After(deadline) {
			return err
		}
		<-retry.C
	}
}

// NewRole makes a login role with the attributes, for instance "replication",
// and returns its name and password. On a shared server the role stays.
func (s *Server) NewRole(t testing.TB, attributes string) (role, password string) {
	t.Helper()
	role, password = "role_"+token(), rand.Text()
	s.Exec(t, fmt.Sprintf("create role %s login password '%s' %s", role, password, attributes))
	return role, password
}

// token is a name part that no other test, process or run has.
func token() string { return strings.ToLower(rand.Text()[:12]) }

// Set changes a setting of the running server and has it read again; one that
// needs a restart takes effect at the next.
func (s *Server) Set(t testing.TB, setting, value string) {
	t.Helper()
	s.Exec(t, fmt.Sprintf("alter system set %s = '%s'", setting, strings.ReplaceAll(value, "'", "''")))
	s.Exec(t, "select pg_reload_conf()")
}
