package inbox

import (
	"context"
	"fmt"
)

// Outcome says what became of a record.
type Outcome uint8

// The outcomes. The zero value stands beside an error.
const (
	// Unsettled: the handler did not succeed; the record has to be handled again.
	Unsettled Outcome = iota
	// Handled: the handler succeeded; with its transaction the record is done.
	Handled
	// Duplicate: it had been handled before; nothing was done.
	Duplicate
)

func (o Outcome) String() string {
	switch o {
	case Handled:
		return "handled"
	case Duplicate:
		return "duplicate"
	default:
		return "unsettled"
	}
}

// Store is a database with a table of marks; Tx is its transaction.
type Store[Tx any] interface {
	// Mark inserts the mark in the transaction and reports whether it was new. While
	// another transaction has inserted the same mark and is open, it waits for its
	// outcome, or fails: it never answers true to both.
	Mark(ctx context.Context, tx Tx, route, id string) (fresh bool, err error)
	// Rollback ends the transaction so that nothing of it can be committed any more.
	Rollback(ctx context.Context, tx Tx)
}

// Apply marks a message and hands it to the handler, both with the same
// transaction; there is no way to give them different ones. For those who write
// the inbox of a database; applications use inbox/postgres or inbox/mongo.
//
// After an error, and after a panic of the handler, the transaction has been
// rolled back: a mark without its handling cannot be committed by mistake. The
// error of the mark is wrapped, the handler's is returned as it is.
func Apply[Tx any](ctx context.Context, in *Inbox, s Store[Tx], tx Tx, m Message, handler func(context.Context, Tx, Message) error) (Outcome, error) {
	settled := false
	defer func() {
		if !settled {
			in.counts.failed.Add(1)
			s.Rollback(ctx, tx)
		}
	}()
	fresh, err := s.Mark(ctx, tx, in.opts.Route, m.ID)
	if err != nil {
		return Unsettled, fmt.Errorf("marking message %s of route %s: %w", m.ID, in.opts.Route, err)
	}
	if !fresh {
		settled = true
		in.counts.duplicates.Add(1)
		return Duplicate, nil
	}
	in.merge(&m)
	if err := handler(ctx, tx, m); err != nil {
		return Unsettled, err
	}
	settled = true
	in.counts.handled.Add(1)
	return Handled, nil
}
