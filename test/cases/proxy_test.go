package cases

import (
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"strconv"
	"sync"
	"testing"
)

// proxy stands between a relay and Postgres. It can drop all packets without
// closing anything, and it can change what the server says.
type proxy struct {
	listener net.Listener
	target   string
	// change may alter a message of the server before it is passed on; it gets the
	// body without type and length. Only for connections without TLS.
	change func(kind byte, body []byte)

	mu      sync.Mutex
	resumed chan struct{} // closed while packets pass
	closed  bool
	conns   []net.Conn
}

// newProxy starts a proxy to the server on 127.0.0.1 and the given port.
func newProxy(t testing.TB, port int, change func(kind byte, body []byte)) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, target: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), change: change, resumed: make(chan struct{})}
	close(p.resumed)
	var done sync.WaitGroup
	done.Go(func() { p.serve(&done) })
	t.Cleanup(func() {
		_ = l.Close()
		p.mu.Lock()
		p.closed = true
		for _, c := range p.conns {
			_ = c.Close()
		}
		p.mu.Unlock()
		p.pass()
		done.Wait()
	})
	return p
}

// through is a connection string that goes through the proxy.
func (p *proxy) through(t testing.TB, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = p.listener.Addr().String()
	return u.String()
}

// drop loses all packets from now on, in both directions; connections stay open.
func (p *proxy) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resumed = make(chan struct{})
}

// pass ends a drop; what was held up is sent on.
func (p *proxy) pass() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.resumed:
	default:
		close(p.resumed)
	}
}

func (p *proxy) gate() {
	p.mu.Lock()
	resumed := p.resumed
	p.mu.Unlock()
	<-resumed
}

// keep notes a connection for the end; false: the end has come.
func (p *proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = append(p.conns, c)
	return !p.closed
}

func (p *proxy) serve(done *sync.WaitGroup) {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		done.Go(func() {
			defer func() { _ = client.Close() }()
			if !p.keep(client) {
				return
			}
			p.gate()
			server, err := net.Dial("tcp", p.target)
			if err != nil {
				return
			}
			defer func() { _ = server.Close() }()
			if !p.keep(server) {
				return
			}
			var back sync.WaitGroup
			back.Go(func() {
				p.copyServer(client, server)
				_ = client.Close()
			})
			p.copy(server, client)
			_ = server.Close()
			back.Wait()
		})
	}
}

func (p *proxy) copy(to io.Writer, from io.Reader) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		p.gate()
		if _, werr := to.Write(buf[:n]); err != nil || werr != nil {
			return
		}
	}
}

// copyServer passes message by message, so that each can be changed.
func (p *proxy) copyServer(to io.Writer, from io.Reader) {
	if p.change == nil {
		p.copy(to, from)
		return
	}
	head := make([]byte, 5)
	for {
		if _, err := io.ReadFull(from, head); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		if _, err := io.ReadFull(from, body); err != nil {
			return
		}
		p.change(head[0], body)
		p.gate()
		if _, err := to.Write(append(head[:5:5], body...)); err != nil {
			return
		}
	}
}
