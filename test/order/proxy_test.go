package order

import (
	"bytes"
	"io"
	"net"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// way leads to a server of Postgres. What the server says can be held up on it: all of it, or
// the log by so much.
type way struct {
	listener net.Listener
	target   string
	late     atomic.Int64 // nanoseconds that the log comes late by

	mu    sync.Mutex
	open  chan struct{} // closed while packets pass
	conns []net.Conn
	ended bool
}

func newWay(t testing.TB, port int) *way {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &way{listener: l, target: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), open: make(chan struct{})}
	close(w.open)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { w.join(client) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		w.mu.Lock()
		w.ended = true
		for _, c := range w.conns {
			_ = c.Close()
		}
		w.mu.Unlock()
		w.pass()
		running.Wait()
	})
	return w
}

// through is the connection string that goes this way.
func (w *way) through(t testing.TB, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal("the connection string is no URL")
	}
	u.Host = w.listener.Addr().String()
	return u.String()
}

// hold keeps all packets back from now on; connections stay open.
func (w *way) hold() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open = make(chan struct{})
}

// pass ends a hold; what was kept back goes on.
func (w *way) pass() {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.open:
	default:
		close(w.open)
	}
}

func (w *way) gate() {
	w.mu.Lock()
	open := w.open
	w.mu.Unlock()
	<-open
}

func (w *way) keep(c net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns = append(w.conns, c)
	return !w.ended
}

func (w *way) join(client net.Conn) {
	defer func() { _ = client.Close() }()
	if !w.keep(client) {
		return
	}
	server, err := net.Dial("tcp", w.target)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	if !w.keep(server) {
		return
	}
	// The first message names the database, and says when it is about the log.
	hello := make([]byte, 4<<10)
	n, err := client.Read(hello)
	if err != nil {
		return
	}
	w.gate()
	if _, err := server.Write(hello[:n]); err != nil {
		return
	}
	isLog := bytes.Contains(hello[:n], []byte("replication\x00"))
	var back sync.WaitGroup
	back.Go(func() {
		w.answers(client, server, isLog)
		_ = client.Close()
	})
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		w.gate()
		if _, werr := server.Write(buf[:n]); err != nil || werr != nil {
			break
		}
	}
	_ = server.Close()
	back.Wait()
}

// answers passes on what the server says, each piece when it is due.
func (w *way) answers(client io.Writer, server io.Reader, isLog bool) {
	type piece struct {
		due  time.Time
		data []byte
	}
	pieces := make(chan piece, 1<<16)
	var writing sync.WaitGroup
	writing.Go(func() {
		for p := range pieces {
			if d := time.Until(p.due); d > 0 {
				<-time.After(d)
			}
			w.gate()
			if _, err := client.Write(p.data); err != nil {
				for range pieces { // the reader must not wait
					continue
				}
			}
		}
	})
	buf := make([]byte, 64<<10)
	for {
		n, err := server.Read(buf)
		if n > 0 {
			p := piece{due: time.Now(), data: bytes.Clone(buf[:n])}
			if isLog {
				p.due = p.due.Add(time.Duration(w.late.Load()))
			}
			pieces <- p
		}
		if err != nil {
			break
		}
	}
	close(pieces)
	writing.Wait()
}
