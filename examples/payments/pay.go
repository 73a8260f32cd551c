package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/inbox"
	"github.com/walrelay/walrelay/stage"
	"github.com/walrelay/walrelay/stage/postgres"
)

type till struct{ out *postgres.Outbox }

type order struct {
	Order string `json:"order"`
	Total string `json:"total"`
}

// pay is the handler: the payment, the event that tells of it, and the inbox's
// mark are in the transaction tx, which the inbox commits.
func (t till) pay(ctx context.Context, tx pgx.Tx, m inbox.Message) error {
	if m.Type != "OrderPlaced" {
		return nil // handled: there is nothing to do
	}
	var o order
	if err := json.Unmarshal(m.Value, &o); err != nil {
		// It will not be better the next time: a service with a place for such records
		// writes it there, on tx, and returns nil. This one stops.
		return fmt.Errorf("order in %s: %w", m.Place(), err)
	}
	if _, err := tx.Exec(ctx, `insert into payments (order_id, total) values ($1, $2)`, o.Order, o.Total); err != nil {
		return err
	}
	// The payment's event says what caused it.
	ctx = stage.WithIdentity(ctx, stage.Identity(m.Identity))
	b := t.out.Buffer()
	if _, err := b.Stage(ctx, stage.Event{Route: "payments", Type: "OrderPaid", Key: o.Order, Payload: o}); err != nil {
		return err
	}
	_, err := t.out.Flush(ctx, postgres.Pgx(tx), b)
	return err
}
