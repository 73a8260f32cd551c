package pgserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/test/ground"
)

// PoolerVariable names the environment variable that holds the path of the
// program pgbouncer, where it is not in PATH or /usr/sbin.
const PoolerVariable = "WALRELAY_TEST_PGBOUNCER"

// Pooler is a PgBouncer in transaction mode before one server, with pools of two
// connections and without prepared statements, which is the strictest there is.
type Pooler struct {
	server   *Server
	program  string
	dir      string
	port     int
	password string
	process  *ground.Process
}

// Pooler starts a PgBouncer before the server and ends it with the test. settings
// are lines of its configuration that win, for instance "default_pool_size": "5".
func (s *Server) Pooler(t testing.TB, settings map[string]string) *Pooler {
	t.Helper()
	p := &Pooler{server: s}
	if err := p.build(t, settings); err != nil {
		t.Fatalf("start PgBouncer: %v", err)
	}
	if err := p.run(); err != nil {
		t.Fatalf("start PgBouncer: %v", err)
	}
	return p
}

// Port is the TCP port on 127.0.0.1; it stays over restarts.
func (p *Pooler) Port() int { return p.port }

// URL is the superuser's connection string for the database, through the pooler.
func (p *Pooler) URL(database string) string {
	u := url.URL{Scheme: "postgres", Host: "127.0.0.1:" + strconv.Itoa(p.port), Path: "/" + database, RawQuery: "sslmode=disable"}
	u.User = url.UserPassword("postgres", p.password)
	return u.String()
}

// Restart ends the pooler at once, clients or not, and starts it again.
func (p *Pooler) Restart(t testing.TB) {
	t.Helper()
	p.kill()
	if err := p.run(); err != nil {
		t.Fatalf("start PgBouncer again: %v", err)
	}
}

// Log is what the pooler has logged so far.
func (p *Pooler) Log() string {
	b, err := os.ReadFile(filepath.Join(p.dir, "log"))
	if err != nil {
		return ""
	}
	return string(b)
}

func poolerProgram() (string, error) {
	if path := os.Getenv(PoolerVariable); path != "" {
		return path, nil
	}
	if path, err := exec.LookPath("pgbouncer"); err == nil {
		return path, nil
	}
	const debian = "/usr/sbin/pgbouncer" // not in everybody's PATH
	if _, err := os.Stat(debian); err == nil {
		return debian, nil
	}
	return "", fmt.Errorf("the program is missing; on Debian or Ubuntu type: sudo apt-get install -y --no-install-recommends pgbouncer (or set %s)", PoolerVariable)
}

// knowsPreparedStatements: the setting came with 1.21, and an unknown one ends the program.
func knowsPreparedStatements(program string) (bool, error) {
	out, err := exec.Command(program, "--version").Output()
	if err != nil {
		return false, fmt.Errorf("%s --version: %w", program, err)
	}
	var major, minor int
	if _, err := fmt.Fscanf(bytes.NewReader(out), "PgBouncer %d.%d", &major, &minor); err != nil {
		return false, fmt.Errorf("%s --version says %q", program, out)
	}
	return major > 1 || minor >= 21, nil
}

// build takes a folder and a port and writes the configuration.
func (p *Pooler) build(t testing.TB, settings map[string]string) (err error) {
	if p.program, err = poolerProgram(); err != nil {
		return err
	}
	prepared, err := knowsPreparedStatements(p.program)
	if err != nil {
		return err
	}
	dir, release, err := ground.RunDir("pgbouncer")
	if err != nil {
		return err
	}
	t.Cleanup(release)
	t.Cleanup(p.kill)
	p.dir = dir
	port, release, err := ground.Port()
	if err != nil {
		return err
	}
	t.Cleanup(release)
	p.port = port
	target, err := p.target()
	if err != nil {
		return err
	}
	all := map[string]string{
		"listen_addr": "127.0.0.1", "listen_port": strconv.Itoa(port), "unix_socket_dir": "",
		"auth_type": "scram-sha-256", "auth_file": filepath.Join(dir, "users"),
		"pool_mode": "transaction", "default_pool_size": "2", "max_client_conn": "200",
		"server_login_retry": "1",
	}
	if prepared {
		all["max_prepared_statements"] = "0"
	}
	maps.Copy(all, settings)
	var conf strings.Builder
	fmt.Fprintf(&conf, "[databases]\n* = %s\n[pgbouncer]\n", target)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&conf, "%s = %s\n", name, all[name])
	}
	if err := p.write("pgbouncer.ini", conf.String()); err != nil {
		return err
	}
	return p.write("users", fmt.Sprintf("\"postgres\" \"%s\"\n", strings.ReplaceAll(p.password, `"`, `""`)))
}

// target says where the server is, in the words of a line of [databases].
func (p *Pooler) target() (string, error) {
	cfg, err := p.server.ConnConfig("postgres")
	if err != nil {
		return "", err
	}
	p.password = cfg.Password
	return fmt.Sprintf("host=%s port=%d", cfg.Host, cfg.Port), nil
}

func (p *Pooler) write(name, content string) error {
	path := filepath.Join(p.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		return err
	}
	return p.server.as.own(path)
}

// run starts the program, as the account that Postgres runs as: it refuses root too.
func (p *Pooler) run() error {
	log, err := os.OpenFile(filepath.Join(p.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := p.server.as.command(p.dir, p.program, filepath.Join(p.dir, "pgbouncer.ini"))
	cmd.Stdout, cmd.Stderr = log, log
	if p.process, err = ground.StartProcess(cmd, syscall.SIGKILL); err != nil {
		return err
	}
	return p.awaitReady()
}

// awaitReady waits until a session gets through to the server.
func (p *Pooler) awaitReady() error {
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	cfg, err := pgx.ParseConfig(p.URL("postgres"))
	if err != nil {
		return err
	}
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	retry := time.NewTicker(10 * time.Millisecond)
	defer retry.Stop()
	for {
		conn, err := pgx.ConnectConfig(ctx, cfg)
		if err == nil {
			_, err = conn.Exec(ctx, "select 1")
			_ = conn.Close(ctx)
		}
		if err == nil {
			return nil
		}
		select {
		case <-p.process.Done():
			return fmt.Errorf("it ended while starting: %w\n%s", errors.Join(p.process.Err(), err), p.Log())
		case <-ctx.Done():
			return fmt.Errorf("it lets nobody in after %s: %w\n%s", readyWithin, err, p.Log())
		case <-retry.C:
		}
	}
}

func (p *Pooler) kill() {
	if p.process != nil && p.process.Running() {
		_ = p.process.Signal(syscall.SIGKILL)
		<-p.process.Done()
	}
}
