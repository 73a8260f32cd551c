package mongoserver

import (
	"sync"
	"testing"
)

// pool holds the server that the tests of this process share.
var pool struct {
	mu     sync.Mutex
	tried  bool
	server *Server
	err    error
}

// Shared returns the set of one node that all tests of this process share, and
// starts it at first use. Take a database of your own with NewDatabase, and do
// not stop, freeze or reconfigure it. The package's TestMain has to call Main,
// which ends it.
func Shared(t testing.TB) *Server {
	t.Helper()
	pool.mu.Lock()
	defer pool.mu.Unlock()
	if !pool.tried {
		pool.tried = true
		pool.server, pool.err = start(Options{})
	}
	if pool.err != nil {
		t.Fatalf("start the shared MongoDB: %v", pool.err)
	}
	return pool.server
}

// shared reports whether other tests use the server too.
func (s *Server) shared() bool {
	pool.mu.Lock()
	defer pool.mu.Unlock()
	return pool.server == s
}

// Main runs the tests and then ends the shared server. Use it as the last
// statement of TestMain; the exit code is the test's own.
func Main(m *testing.M) {
	defer StopShared()
	m.Run()
}

// StopShared ends the shared server; for a TestMain that does more than Main,
// for instance: defer mongoserver.StopShared(); kafkaserver.Main(m).
func StopShared() {
	pool.mu.Lock()
	defer pool.mu.Unlock()
	if pool.server != nil {
		pool.server.close()
	}
	pool.server, pool.tried, pool.err = nil, false, nil
}
