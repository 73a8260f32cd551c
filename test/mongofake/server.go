package mongofake

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// Handler answers a command. It runs on the connection's goroutine.
type Handler func(Command) Answer

// Server is the fake. Its methods may be called from several goroutines.
type Server struct {
	mu       sync.Mutex
	changed  chan struct{} // closed and replaced whenever something happens
	closed   bool
	conns    map[*conn]bool
	running  sync.WaitGroup
	listener net.Listener
	address  string // what hello tells

	handlers  map[string]Handler
	scripts   map[string][]Answer
	received  []Command
	secondary bool
	now       bson.Timestamp
	log       changeLog
}

// pipeAddress is what clients dial that come through pipes; it is never resolved.
const pipeAddress = "mongofake:27017"

// New makes a server that ends with the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{
		changed:  make(chan struct{}),
		conns:    map[*conn]bool{},
		address:  pipeAddress,
		handlers: map[string]Handler{},
		scripts:  map[string][]Answer{},
		now:      bson.Timestamp{T: 1, I: 1},
		log:      changeLog{cursors: map[int64]*cursor{}, token: IdleToken(bson.Timestamp{T: 1, I: 1})},
	}
	s.builtIn()
	t.Cleanup(s.close)
	return s
}

// Client connects through pipes, with the further options, and disconnects with
// the test.
func (s *Server) Client(t testing.TB, more ...*options.ClientOptions) *mongo.Client {
	t.Helper()
	client, err := mongo.Connect(append([]*options.ClientOptions{s.Options()}, more...)...)
	if err != nil {
		t.Fatalf("connect to the fake MongoDB: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = client.Disconnect(ctx)
	})
	return client
}

// Options let a client connect through pipes.
func (s *Server) Options() *options.ClientOptions {
	return options.Client().ApplyURI("mongodb://" + pipeAddress + "/?replicaSet=" + setName).SetDialer(dialer{s})
}

type dialer struct{ s *Server }

func (d dialer) DialContext(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	if !d.s.serve(server) {
		return nil, net.ErrClosed
	}
	return client, nil
}

// URL listens on loopback and returns the connection string; from then on the
// server is reached in no other way. Not inside of a synctest bubble.
func (s *Server) URL(t testing.TB) string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatalf("listen: %v", err)
		}
		s.listener, s.address = listener, listener.Addr().String()
		s.running.Go(func() {
			for {
				c, err := listener.Accept()
				if err != nil {
					return
				}
				s.serve(c)
			}
		})
	}
	return "mongodb://" + s.address + "/?replicaSet=" + setName
}

// Handle has every command of the name answered by the handler, instead of what
// was before.
func (s *Server) Handle(command string, h Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handlers[command] = h
}

// Script has the next commands of the name answered so, one each.
func (s *Server) Script(command string, answers ...Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scripts[command] = append(s.scripts[command], answers...)
}

// Received lists the commands of the name so far, in order.
func (s *Server) Received(command string) []Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.receivedLocked(command)
}

func (s *Server) receivedLocked(command string) []Command {
	return slices.DeleteFunc(slices.Clone(s.received), func(c Command) bool { return c.Name != command })
}

// Await waits until n commands of the name have come in, or the test is over.
func (s *Server) Await(t testing.TB, command string, n int) {
	t.Helper()
	for {
		s.mu.Lock()
		got, changed := len(s.receivedLocked(command)), s.changed
		s.mu.Unlock()
		if got >= n {
			return
		}
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatalf("%d commands %s came in, want %d", got, command, n)
		}
	}
}

// Connections counts the open connections.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// Disconnect closes all connections, as when the server goes; it stays reachable.
func (s *Server) Disconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.hangUp()
	}
}

// happened wakes all who wait. The caller holds mu.
func (s *Server) happened() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Server) close() {
	s.mu.Lock()
	s.closed = true
	for c := range s.conns {
		c.hangUp()
	}
	if s.listener != nil {
		_ = s.listener.Close()
	}
	s.mu.Unlock()
	s.running.Wait()
}
