package relay

import (
	"context"

	"github.com/walrelay/walrelay/event"
)

// Source is a log that events are read from. Next, Finish and Close are called
// by one goroutine each; Confirm by another. All may overlap.
type Source interface {
	// Next waits for the next batch. The batch's Events are valid until the next
	// call; their bytes until the batch's Memory is released, which the caller
	// owes. event.ErrTurn says that the source is complete and that Open has another
	// one to go on with, once everything that was handed out is settled. A lost connection is the source's own business: it reconnects for ever
	// and no event comes twice for it. An error other than io.EOF and the
	// context's answers its class (package event); after it the source is finished.
	Next(ctx context.Context) (*event.Batch, error)

	// Finish asks for an orderly end: Next goes on until the transaction at hand is
	// complete and then returns io.EOF. It does not block.
	Finish()

	// Confirm says that everything at or below pos is durably published. It does
	// not block; the source tells its server soon. Positions come from Span.End and
	// never go back.
	Confirm(pos event.Position)

	// Close tells the server the last confirmed position and ends the connection.
	Close(ctx context.Context) error
}

// Settler is a Source whose events are settled one by one, because there is no
// position behind them: claimed rows. Each of its events is a span of its own.
type Settler interface {
	// Settle takes the result of the n-th event that this source handed out, counted
	// from 0. It answers whether the source deals with the error itself; otherwise the
	// feed stops with it. It is called from the publisher's goroutines and must not block.
	Settle(n uint64, err error) bool
}

// Publisher sends records to a broker.
//
// For each ticket that Publish or Refuse took (returned nil), the publisher
// calls the result function that it was made with exactly once: with nil when
// the record (or its dead letter) is durable, else with the error that answers
// its class. The call may come from any goroutine, also before Publish returns,
// and must not block. Until then the publisher is a user of the ticket's Memory.
//
// Records of one key get to their partition in the order of the calls; one that
// fails holds back the later ones of its key.
type Publisher interface {
	// Publish takes a record. It blocks only for room and for ctx. rec itself may
	// be reused on return; the bytes it points at may not.
	Publish(ctx context.Context, rec *event.Record, t event.Ticket) error

	// Refuse takes a record that must not be sent as it is, with the poison error
	// that says why, and applies the poison policy to it, in order with the other
	// records of its key.
	Refuse(ctx context.Context, rec *event.Record, t event.Ticket, why error) error

	// Close waits until all results are delivered or ctx ends, then delivers the
	// rest as errors and lets the broker go.
	Close(ctx context.Context) error
}

// Router makes records of events; see package router. It is pure: the same event
// gives the same record, on a redelivery too.
type Router interface {
	// Route fills rec and appends the bytes it had to make to scratch, which it
	// returns. On a poison error rec is filled as far as it could be, so that it can
	// be refused.
	Route(ev *event.Event, rec *event.Record, scratch []byte) ([]byte, error)
}
