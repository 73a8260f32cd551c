package pgserver

import (
	"io"
	"net"
	"net/url"
	"strconv"
	"sync"
	"testing"
)

// Forward is an address on loopback behind which one server or another answers,
// as a host name does that fails over.
type Forward struct {
	listener net.Listener

	mu    sync.Mutex
	port  int // zero: nobody answers
	conns map[net.Conn]bool
	ended bool
}

// NewForward opens an address that leads to the port on 127.0.0.1; zero means
// nowhere. It is closed with the test.
func NewForward(t testing.TB, port int) *Forward {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &Forward{listener: l, port: port, conns: map[net.Conn]bool{}}
	var running sync.WaitGroup
	running.Go(func() { f.serve(&running) })
	t.Cleanup(func() {
		_ = l.Close()
		f.mu.Lock()
		f.ended = true
		f.mu.Unlock()
		f.Flip(0)
		running.Wait()
	})
	return f
}

// Port is the address's own port; it stays.
func (f *Forward) Port() int { return f.listener.Addr().(*net.TCPAddr).Port }

// URL is a connection string that leads through the address.
func (f *Forward) URL(t testing.TB, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal("the connection string is no URL")
	}
	u.Host = f.listener.Addr().String()
	return u.String()
}

// Flip leads to another port from now on, zero for nowhere, and breaks the
// connections there are.
func (f *Forward) Flip(port int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.port = port
	for c := range f.conns {
		_ = c.Close()
	}
}

func (f *Forward) serve(running *sync.WaitGroup) {
	for {
		client, err := f.listener.Accept()
		if err != nil {
			return
		}
		running.Go(func() { f.join(client) })
	}
}

// join connects a client to where the address leads.
func (f *Forward) join(client net.Conn) {
	defer func() { _ = client.Close() }()
	server := f.dial(client)
	if server == nil {
		return
	}
	defer f.leave(client, server)
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	})
	_, _ = io.Copy(server, client)
	_ = server.Close()
	back.Wait()
}

// dial is under the lock, so that a flip finds every connection of the old place.
func (f *Forward) dial(client net.Conn) net.Conn {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended || f.port == 0 {
		return nil
	}
	server, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(f.port)))
	if err != nil {
		return nil
	}
	f.conns[client], f.conns[server] = true, true
	return server
}

func (f *Forward) leave(conns ...net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
		delete(f.conns, c)
	}
}
