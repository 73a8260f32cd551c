package mongoserver

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/ground"
)

// Options say what is special about a server. The zero value is a replica set of
// one node, without authentication.
type Options struct {
	// Nodes is 1 or 3; zero means 1. Each takes about 130 MB of memory.
	Nodes int
	// Arbiter makes the last of three nodes one that votes and holds no data.
	Arbiter bool
	// Standalone starts one server that is no replica set: without oplog, change
	// streams and transactions.
	Standalone bool
	// OplogMB is the oplog's size in MiB; zero means 128. With 10 a position is lost
	// after some 30 MiB of writes; see OutrunOplog.
	OplogMB int
	// CacheMB is the storage engine's cache in MiB; zero means 256, the least.
	// Documents near 16 MiB need 1024.
	CacheMB int
	// Auth makes clients log in. URL is then that of a user who may do everything;
	// more with AddUser.
	Auth bool
	// TLS encrypts all connections, with certificates for localhost and 127.0.0.1;
	// see CAFile.
	TLS bool
	// TestCommands allows fail points; see FailPoint.
	TestCommands bool
	// Params are server parameters, as in --setParameter; they win over the defaults.
	Params map[string]string
	// Args are further arguments of mongod.
	Args []string
}

// Server is a replica set or a standalone server. Its methods may be called from
// several goroutines, those that stop, freeze and start nodes only one at a time.
type Server struct {
	opts     Options
	program  string
	dir      string // run folder: per node data and log, certificates, key
	nodes    []*node
	password string            // of the user root, with Options.Auth
	ca       *ground.Authority // nil without TLS
	release  []func()          // in order of acquisition
}

// readyWithin bounds a start, recovery after a crash and elections included.
const readyWithin = 60 * time.Second

// defaultOplogMB is more than any test writes that does not mean to.
const defaultOplogMB = 128

// setName is the name of every replica set.
const setName = "rs0"

// Start starts a server of the test's own, and ends it with the test. When the
// test failed, the end of each node's log is in its output.
func Start(t testing.TB, opts Options) *Server {
	t.Helper()
	s, err := start(opts)
	if err != nil {
		t.Fatalf("start MongoDB: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("end of the MongoDB log:\n%s", s.logTail())
		}
		s.close()
	})
	return s
}

// Open starts a server for a program that is no test. The caller owes Close.
func Open(opts Options) (*Server, error) { return start(opts) }

// Close ends a server of Open's, whatever its state, and removes its files.
func (s *Server) Close() { s.close() }

func start(opts Options) (*Server, error) {
	opts.Nodes = max(opts.Nodes, 1)
	switch {
	case opts.Nodes != 1 && opts.Nodes != 3:
		return nil, fmt.Errorf("%d nodes asked for, want 1 or 3", opts.Nodes)
	case opts.Standalone && opts.Nodes != 1:
		return nil, fmt.Errorf("a standalone server of %d nodes asked for", opts.Nodes)
	case opts.Arbiter && opts.Nodes != 3:
		return nil, fmt.Errorf("an arbiter among %d nodes asked for, want 3", opts.Nodes)
	}
	if opts.OplogMB == 0 {
		opts.OplogMB = defaultOplogMB
	}
	opts.CacheMB = max(opts.CacheMB, 256)
	s := &Server{opts: opts}
	if err := s.build(); err != nil {
		err = fmt.Errorf("%w\n%s", err, s.logTail())
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *Server) build() error {
	var err error
	if s.program, err = program(); err != nil {
		return err
	}
	dir, release, err := ground.RunDir("mongo")
	if err != nil {
		return err
	}
	s.dir, s.release = dir, append(s.release, release)
	if err := s.prepare(); err != nil {
		return err
	}
	for i := range s.opts.Nodes {
		n, err := s.newNode(i)
		if err != nil {
			return err
		}
		s.nodes = append(s.nodes, n)
	}
	for _, n := range s.nodes {
		if err := s.run(n); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	for _, n := range s.nodes {
		if err := n.awaitPort(ctx); err != nil {
			return err
		}
	}
	if !s.opts.Standalone {
		if err := s.initiate(ctx); err != nil {
			return err
		}
	}
	if s.opts.Auth {
		if err := s.addRoot(ctx); err != nil {
			return err
		}
	}
	return s.awaitMembers(ctx)
}

// prepare writes what the nodes share: the key by which they know each other and
// the certificate.
func (s *Server) prepare() error {
	if s.opts.Auth {
		s.password = rand.Text()
		if err := os.WriteFile(s.keyFile(), []byte(rand.Text()+rand.Text()), 0o400); err != nil {
			return err
		}
	}
	if !s.opts.TLS {
		return nil
	}
	var err error
	if s.ca, err = ground.NewAuthority(); err != nil {
		return err
	}
	cert, key, err := s.ca.Issue("localhost")
	if err != nil {
		return err
	}
	if err := os.WriteFile(s.CAFile(), s.ca.PEM, 0o600); err != nil {
		return err
	}
	return os.WriteFile(s.certFile(), append(cert, key...), 0o600)
}

// close ends the nodes, whatever their state, and removes their files.
func (s *Server) close() {
	for _, n := range s.nodes {
		n.kill()
	}
	for i := len(s.release) - 1; i >= 0; i-- {
		s.release[i]()
	}
}

// CAFile is the certificate, PEM, of the authority that signed the nodes'; with
// Options.TLS only. The file goes with the server.
func (s *Server) CAFile() string { return filepath.Join(s.dir, "ca.pem") }

func (s *Server) certFile() string { return filepath.Join(s.dir, "server.pem") }

func (s *Server) keyFile() string { return filepath.Join(s.dir, "key") }
