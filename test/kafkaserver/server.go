package kafkaserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/walrelay/walrelay/test/ground"
)

// Options say what is special about a server. The zero value is one broker
// without authentication.
type Options struct {
	// Settings are lines of server.properties; they win over the defaults.
	Settings map[string]string
	// Brokers is 1 or 3; zero means 1.
	Brokers int
	// Users, name to password, makes clients log in with PLAIN, SCRAM-SHA-256 or
	// SCRAM-SHA-512.
	Users map[string]string
	// TLS encrypts clients' connections; see TLSConfig and CA.
	TLS bool
	// Authorizer refuses clients whatever no ACL allows. The test's own admin client
	// may do all.
	Authorizer bool
	// Advertise gives the address that a node tells to clients under test, from the
	// port it listens on: that of a proxy. It is called once per node.
	Advertise func(port int) string
	// HeapMB is the Java heap in MiB; zero means 512, with ServerClass 1024.
	HeapMB int
	// ServerClass compiles hot code fully: slower to warm up, faster then; for benchmarks.
	ServerClass bool
}

// Server is a Kafka cluster of one or three nodes.
type Server struct {
	opts     Options
	dir      string
	libs     string
	java     string
	nodes    []*node
	ca       *ground.Authority // nil without TLS
	external []string          // addresses of existing brokers; all above is then unused
	release  []func()
}

// readyWithin bounds a start; three JVMs on two busy cores take their time.
const readyWithin = 120 * time.Second

// Start starts a server of the test's own, and ends it with the test. When the
// test failed, the end of each node's log is in its output.
func Start(t testing.TB, opts Options) *Server {
	t.Helper()
	s, err := start(opts)
	if err != nil {
		t.Fatalf("start Kafka: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("end of the Kafka log:\n%s", s.logTail())
		}
		s.close()
	})
	return s
}

func start(opts Options) (*Server, error) {
	if opts.Brokers == 0 {
		opts.Brokers = 1
	}
	if opts.Brokers != 1 && opts.Brokers != 3 {
		return nil, fmt.Errorf("%d brokers asked for, want 1 or 3", opts.Brokers)
	}
	if opts.HeapMB == 0 {
		opts.HeapMB = 512
		if opts.ServerClass {
			opts.HeapMB = 1024
		}
	}
	s := &Server{opts: opts}
	if err := s.build(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *Server) build() error {
	var err error
	if s.java, err = java(); err != nil {
		return err
	}
	if s.libs, err = libs(); err != nil {
		return err
	}
	dir, release, err := ground.RunDir("kafka")
	if err != nil {
		return err
	}
	s.dir, s.release = dir, append(s.release, release)
	if s.opts.TLS {
		if s.ca, err = ground.NewAuthority(); err != nil {
			return err
		}
	}
	for id := range s.opts.Brokers {
		n, err := s.newNode(id + 1)
		if err != nil {
			return err
		}
		s.nodes = append(s.nodes, n)
	}
	for _, n := range s.nodes {
		if err := s.prepare(n); err != nil {
			return err
		}
	}
	for _, n := range s.nodes {
		if err := s.run(n); err != nil {
			return err
		}
	}
	return s.awaitReady()
}

// awaitReady waits until every running node is registered and takes requests.
func (s *Server) awaitReady() error {
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	cl, err := s.client()
	if err != nil {
		return err
	}
	defer cl.Close()
	retry := time.NewTicker(20 * time.Millisecond)
	defer retry.Stop()
	for {
		// Not through kadm, which answers from the client's cache.
		request := kmsg.NewPtrMetadataRequest()
		request.Topics = []kmsg.MetadataRequestTopic{} // none; nil would be all
		meta, err := request.RequestWith(ctx, cl)
		if err == nil && meta.ControllerID >= 0 && len(meta.Brokers) >= s.alive() {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("%d of %d nodes are registered", len(meta.Brokers), s.alive())
		}
		if dead := s.ended(); dead != nil {
			return fmt.Errorf("node %d of Kafka ended while starting: %w\n%s", dead.id, dead.process.Err(), s.logTail())
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no answer from Kafka after %s: %w\n%s", readyWithin, err, s.logTail())
		case <-retry.C:
		}
	}
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

// Brokers lists the addresses for clients under test.
func (s *Server) Brokers() []string {
	if s.external != nil {
		return s.external
	}
	var addresses []string
	for _, n := range s.nodes {
		addresses = append(addresses, "127.0.0.1:"+strconv.Itoa(n.client))
	}
	return addresses
}

// internal lists the addresses that need no authentication.
func (s *Server) internal() []string {
	if s.external != nil {
		return s.external
	}
	var addresses []string
	for _, n := range s.nodes {
		addresses = append(addresses, "127.0.0.1:"+strconv.Itoa(n.internal))
	}
	return addresses
}

// CA is the certificate, PEM, of the authority that signed the brokers'; with
// Options.TLS only.
func (s *Server) CA() []byte { return s.ca.PEM }

// ClientCert issues a client certificate, PEM; with Options.TLS only.
func (s *Server) ClientCert(t testing.TB, name string) (certPEM, keyPEM []byte) {
	t.Helper()
	certPEM, keyPEM, err := s.ca.Issue(name)
	if err != nil {
		t.Fatalf("issue a client certificate: %v", err)
	}
	return certPEM, keyPEM
}

// TLSConfig trusts the brokers; with Options.TLS only.
func (s *Server) TLSConfig() *tls.Config {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.ca.PEM)
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}

// Log is what the nodes have logged so far.
func (s *Server) Log() string {
	var b strings.Builder
	for _, n := range s.nodes {
		b.WriteString(n.log())
	}
	return b.String()
}

func (s *Server) logTail() string {
	const keep = 30
	var b strings.Builder
	for _, n := range s.nodes {
		lines := strings.Split(strings.TrimSpace(n.log()), "\n")
		fmt.Fprintf(&b, "node %d:\n%s\n", n.id, strings.Join(lines[max(0, len(lines)-keep):], "\n"))
	}
	return b.String()
}
