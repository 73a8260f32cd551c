package kafkaserver

import (
	"os"
	"strings"
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

// Shared returns the one broker that all tests of this process share, and starts
// it at first use. Take topics of your own with Topic, and do not stop or freeze
// it. The package's TestMain has to call Main, which ends it.
func Shared(t testing.TB) *Server {
	t.Helper()
	pool.mu.Lock()
	defer pool.mu.Unlock()
	if !pool.tried {
		pool.tried = true
		if brokers := os.Getenv("WALRELAY_TEST_KAFKA"); brokers != "" {
			pool.server = &Server{external: strings.Split(brokers, ",")}
		} else {
			pool.server, pool.err = start(Options{})
		}
	}
	if pool.err != nil {
		t.Fatalf("start the shared Kafka: %v", pool.err)
	}
	return pool.server
}

// Main runs the tests and then ends the shared server. Use it as the last
// statement of TestMain; the exit code is the test's own.
func Main(m *testing.M) {
	defer StopShared()
	m.Run()
}

// StopShared ends the shared server; for a TestMain that does more than Main,
// for instance: defer kafkaserver.StopShared(); pgserver.Main(m).
func StopShared() {
	pool.mu.Lock()
	defer pool.mu.Unlock()
	if pool.server != nil && pool.server.external == nil {
		pool.server.close()
	}
	pool.server, pool.tried, pool.err = nil, false, nil
}
