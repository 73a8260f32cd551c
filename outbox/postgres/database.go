package postgres

import (
	"context"
	"time"
)

// mostConns bounds the connections for short transactions: a claim, a mark, a
// lease's renewal and a look at the figures may run at the same time.
const mostConns = 5

// mostOpen bounds the transactions that stay open while Kafka is awaited. They have
// connections of their own, so that they cannot keep a mark from being written.
const mostOpen = 16

// Database is one source's database. It connects when it is first asked, and
// remakes connections that break.
type Database struct {
	o     Options
	short *conns
	open  *conns
}

// New makes a Database. It does not connect.
func New(o Options) *Database {
	return &Database{o: o, short: newConns(o, mostConns), open: newConns(o, mostOpen)}
}

// Close ends the connections. Calls that are under way fail.
func (d *Database) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	d.short.close(ctx)
	d.open.close(ctx)
	return nil
}
