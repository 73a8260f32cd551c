package pgserver

import (
	"os"
	"sync"
	"testing"
)

// pool holds the servers that the tests of this process share.
var pool struct {
	mu      sync.Mutex
	servers map[Version]*sharedServer
}

type sharedServer struct {
	once   sync.Once
	server *Server
	err    error
}

// Shared returns the server of that version which all tests of this process
// share, and starts it at first use. Take a database of your own with
// NewDatabase, and do not stop, freeze or reconfigure it. The package's TestMain
// has to call Main, which ends it.
func Shared(t testing.TB, v Version) *Server {
	t.Helper()
	pool.mu.Lock()
	if pool.servers == nil {
		pool.servers = map[Version]*sharedServer{}
	}
	entry := pool.servers[v]
	if entry == nil {
		entry = &sharedServer{}
		pool.servers[v] = entry
	}
	pool.mu.Unlock()
	entry.once.Do(func() {
		if url := os.Getenv(v.variable()); url != "" {
			entry.server = &Server{opts: Options{Version: v}, external: url}
			return
		}
		entry.server, entry.err = start(Options{Version: v})
	})
	if entry.err != nil {
		t.Fatalf("start the shared Postgres: %v", entry.err)
	}
	return entry.server
}

// shared reports whether other tests use the server too.
func (s *Server) shared() bool {
	pool.mu.Lock()
	defer pool.mu.Unlock()
	entry := pool.servers[s.opts.Version]
	return entry != nil && entry.server == s
}

// Main runs the tests and then ends the shared servers. Use it as the last
// statement of TestMain; the exit code is the test's own.
func Main(m *testing.M) {
	defer StopShared()
	m.Run()
}

// StopShared ends the shared servers; for a TestMain that does more than Main.
func StopShared() {
	pool.mu.Lock()
	defer pool.mu.Unlock()
	for v, entry := range pool.servers {
		if entry.server != nil && entry.server.external == "" {
			entry.server.close()
		}
		delete(pool.servers, v)
	}
}
