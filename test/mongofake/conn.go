package mongofake

import (
	"net"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// conn is one connection. It reads while it answers, to notice that the client
// has hung up.
type conn struct {
	net.Conn
	gone func()
	left <-chan struct{} // closed when either side has hung up
}

func (c *conn) hangUp() {
	_ = c.Close()
	c.gone()
}

// serve answers the connection until it ends; false when the server is closed.
func (s *Server) serve(raw net.Conn) bool {
	left := make(chan struct{})
	c := &conn{Conn: raw, left: left, gone: sync.OnceFunc(func() { close(left) })}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = raw.Close()
		return false
	}
	s.conns[c] = true
	messages := make(chan message)
	s.running.Go(func() {
		defer c.hangUp()
		for {
			m, err := readMessage(c)
			if err != nil {
				return
			}
			select {
			case messages <- m:
			case <-c.left:
				return
			}
		}
	})
	s.running.Go(func() {
		s.answerAll(c, messages)
		c.hangUp()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.conns, c)
		s.happened()
	})
	return true
}

func (s *Server) answerAll(c *conn, messages <-chan message) {
	for {
		var m message
		select {
		case m = <-messages:
		case <-c.left:
			return
		}
		document, ok := s.answer(c, m.command)
		if !ok {
			return
		}
		if m.silent {
			continue
		}
		if err := m.reply(c, document); err != nil {
			return
		}
	}
}

// answer returns the reply to the command; false hangs up.
func (s *Server) answer(c *conn, command Command) (bson.D, bool) {
	s.mu.Lock()
	s.received = append(s.received, command)
	answer := Default()
	if script := s.scripts[command.Name]; len(script) > 0 {
		answer, s.scripts[command.Name] = script[0], script[1:]
	}
	handler := s.handlers[command.Name]
	s.happened()
	s.mu.Unlock()
	for {
		switch {
		case answer.held != nil:
			select {
			case <-answer.held:
			case <-c.left:
				return nil, false
			}
			answer = *answer.then
		case answer.drop:
			return nil, false
		case answer.byDefault && handler != nil:
			answer = handler(command)
		case answer.byDefault && command.Name == "getMore":
			answer = s.getMore(c, command)
		case answer.byDefault:
			answer = Fail(59, "the fake knows no command "+command.Name) // CommandNotFound
		default:
			s.mu.Lock()
			defer s.mu.Unlock()
			return append(answer.document[:len(answer.document):len(answer.document)],
				bson.E{Key: "operationTime", Value: s.now}), true
		}
	}
}
