package event

import "sync/atomic"

// Batch is what a source hands over at a time: events in log order, cut into
// the transactions they belong to.
type Batch struct {
	// Events is owned by the source and valid until its next call of Next.
	Events []Event
	// Spans partitions Events: the first span covers the first Span.Events events,
	// and so on. A transaction longer than a batch has a span in each.
	Spans []Span
	// Memory owns the bytes that the events alias.
	Memory *Memory
}

// Span is the part of one transaction that lies in one batch, or a place where
// the log moved on without events for us (a keepalive, a filtered transaction).
type Span struct {
	// Events counts the transaction's events in this batch; may be zero.
	Events int
	// Done says that the transaction is complete with this span: End is its commit's end.
	Done bool
	// End is the position to confirm once everything up to here is acknowledged.
	End Position
}

// Memory counts the users of one piece of memory and gives it back when the
// last one lets go. A Memory begins with one user, its maker.
type Memory struct {
	users atomic.Int64
	free  func()
}

// NewMemory makes a Memory with one user. free runs once, in the goroutine that
// releases last; it must not block.
func NewMemory(free func()) *Memory {
	m := &Memory{}
	m.Reset(free)
	return m
}

// Reset makes a Memory whose last user has let go ready for another life, with one user.
func (m *Memory) Reset(free func()) {
	m.free = free
	m.users.Store(1)
}

// Retain adds n users. Only a present user may call it.
func (m *Memory) Retain(n int) { m.users.Add(int64(n)) }

// Release takes one user away.
func (m *Memory) Release() {
	if m.users.Add(-1) == 0 && m.free != nil {
		m.free()
	}
}

// Ticket stands for one event under way to the broker. Whoever holds the ticket
// is a user of its Memory until its result has been delivered.
type Ticket struct {
	Memory *Memory
	// Entry is the transaction's entry in the source's window (package ack).
	Entry uint64
	// Source is the index of the source in the relay.
	Source uint16
}
