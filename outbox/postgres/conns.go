package postgres

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/walrelay/walrelay/event"
)

// conns is a small set of connections, each used by one call at a time. They are
// opened when one is needed and none is free.
type conns struct {
	connect func(ctx context.Context) (*pgx.Conn, error)
	room    chan struct{} // one token per connection that may be in use

	mu     sync.Mutex
	closed bool
	free   []*pgx.Conn
	used   map[*pgx.Conn]struct{}
}

func newConns(o Options, most int) *conns {
	return &conns{connect: o.Connect, room: make(chan struct{}, most), used: map[*pgx.Conn]struct{}{}}
}

// take waits for a connection; give returns it.
func (c *conns) take(ctx context.Context) (*pgx.Conn, error) {
	select {
	case c.room <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	conn, err := c.freeOrNew(ctx)
	if err != nil {
		<-c.room
	}
	return conn, err
}

func (c *conns) freeOrNew(ctx context.Context) (*pgx.Conn, error) {
	c.mu.Lock()
	for n := len(c.free); n > 0 && !c.closed; n = len(c.free) {
		conn := c.free[n-1]
		c.free = c.free[:n-1]
		if conn.IsClosed() {
			continue
		}
		c.used[conn] = struct{}{}
		c.mu.Unlock()
		return conn, nil
	}
	closed := c.closed
	c.mu.Unlock()
	if closed {
		return nil, errClosed()
	}
	conn, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_ = conn.PgConn().Conn().Close()
		return nil, errClosed()
	}
	c.used[conn] = struct{}{}
	return conn, nil
}

func errClosed() error {
	return &event.Error{Class: event.Retry, What: "the connections to the table were closed", Anchor: anchorUnreachable}
}

// give returns a connection. One that broke, or is still in a transaction, is
// not used again; and since what breaks one (a restart, a failover) as a rule breaks all, the
// free ones go as well: each would cost a call.
func (c *conns) give(conn *pgx.Conn) {
	defer func() { <-c.room }()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.used, conn)
	if !conn.IsClosed() && conn.PgConn().TxStatus() == 'I' && !c.closed {
		c.free = append(c.free, conn)
		return
	}
	hangUp(conn.PgConn())
	for _, f := range c.free {
		hangUp(f.PgConn())
	}
	c.free = nil
}

// hangUp closes the socket without a farewell: nobody may be listening.
func hangUp(conn *pgconn.PgConn) {
	_ = conn.Conn().Close()
}

func (c *conns) close(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, conn := range c.free {
		_ = conn.Close(ctx)
	}
	c.free = nil
	for conn := range c.used {
		hangUp(conn.PgConn())
	}
}
