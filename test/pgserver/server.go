package pgserver

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/ground"
)

// Options say what is special about a server. The zero value is Postgres 18
// with wal_level=logical and fsync off.
type Options struct {
	Version Version // zero means V18
	// Settings are lines of postgresql.conf, for instance "wal_sender_timeout": "3s";
	// they win over the defaults.
	Settings map[string]string
	// HBA holds lines of pg_hba.conf that are read before the default ones.
	HBA string
	// TLS switches on ssl with a certificate for localhost and 127.0.0.1; see CAFile.
	TLS bool
	// Fsync makes commits durable against a crash of the machine; for benchmarks.
	Fsync bool
	// SegmentMB is the size of a WAL segment in MiB, a power of two; zero means 16.
	// Small ones make tests of WAL retention quick.
	SegmentMB int
}

// Server is one Postgres server. Its methods may be called from several
// goroutines, those that stop and start it only one at a time.
type Server struct {
	opts     Options
	as       *account
	programs string
	dir      string // run folder: data, log, certificates
	data     string
	port     int
	password string
	ca       *ground.Authority // nil without TLS
	external string            // URL of an existing server; all above is then unused
	primary  *Server           // of a standby
	release  []func()          // in order of acquisition

	mu      sync.Mutex
	process *ground.Process
	guard   *guard // while paused
}

// readyWithin bounds a start, recovery after a crash included.
const readyWithin = 60 * time.Second

// Start starts a server of the test's own, and ends it with the test. When the
// test failed, the end of the server's log is in its output.
func Start(t testing.TB, opts Options) *Server {
	t.Helper()
	s, err := start(opts)
	if err != nil {
		t.Fatalf("start Postgres: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("end of the Postgres log:\n%s", s.logTail())
		}
		s.close()
	})
	return s
}

func start(opts Options) (*Server, error) {
	if opts.Version == 0 {
		opts.Version = V18
	}
	if opts.SegmentMB == 0 {
		opts.SegmentMB = 16
	}
	sweepSegments()
	as, err := runAs()
	if err != nil {
		return nil, err
	}
	tpl, err := prepare(opts.Version, as, opts.SegmentMB)
	if err != nil {
		return nil, err
	}
	s := &Server{opts: opts, as: as, programs: tpl.programs, password: tpl.password}
	if err := s.build(tpl.data); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// build takes a folder and a port, copies the data and starts the server.
func (s *Server) build(data string) error {
	dir, release, err := ground.RunDir(s.opts.Version.String())
	if err != nil {
		return err
	}
	s.release = append(s.release, release)
	s.dir, s.data = dir, filepath.Join(dir, "data")
	if err := copyTree(data, s.data, s.as); err != nil {
		return fmt.Errorf("copy the data folder: %w", err)
	}
	if err := newIdentity(s.data); err != nil {
		return fmt.Errorf("give the server an identity: %w", err)
	}
	return s.launch()
}

// launch takes a port, writes the configuration and starts the server.
func (s *Server) launch() error {
	port, release, err := ground.Port()
	if err != nil {
		return err
	}
	s.release = append(s.release, release)
	s.port = port
	if err := s.configure(); err != nil {
		return err
	}
	return s.run()
}

// run starts the postmaster and waits until it lets clients in.
func (s *Server) run() error {
	log, err := os.OpenFile(s.LogPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := s.as.command(s.data, filepath.Join(s.programs, "bin", "postgres"), "-D", s.data)
	cmd.Stdout, cmd.Stderr = log, log
	// SIGQUIT is the immediate shutdown: the postmaster takes its children with it.
	process, err := ground.StartProcess(cmd, syscall.SIGQUIT)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.process = process
	s.mu.Unlock()
	if err := s.awaitReady(readyWithin); err != nil {
		return fmt.Errorf("%w\n%s", err, s.logTail())
	}
	return nil
}

// close ends the server, whatever its state, and removes its files.
func (s *Server) close() {
	s.unfreeze()
	s.kill()
	for i := len(s.release) - 1; i >= 0; i-- {
		s.release[i]()
	}
}
