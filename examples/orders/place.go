package main

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/walrelay/walrelay/stage"
	"github.com/walrelay/walrelay/stage/postgres"
)

type shop struct {
	pool *pgxpool.Pool
	out  *postgres.Outbox
}

// orderPlaced is what readers get to know of an order.
type orderPlaced struct {
	Order string `json:"order"`
	Total string `json:"total"` // a decimal number as text: no reader rounds it
}

// place writes an order and the event that tells of it. They are in one
// transaction: neither is there without the other, whatever breaks.
func (s shop) place(ctx context.Context, total string) (id string, err error) {
	request, err := uuid.NewV7()
	if err != nil {
		return "", err
	}
	id = fmt.Sprintf("order-%s", request)
	// All that follows from this request, in whichever service, has the same correlation.
	ctx = stage.WithIdentity(ctx, stage.Identity{Correlation: request})
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `insert into orders (id, total) values ($1, $2)`, id, total); err != nil {
			return err
		}
		b := s.out.Buffer()
		if _, err := b.Stage(ctx, stage.Event{
			Route: "orders", Type: "OrderPlaced", Key: id, Payload: orderPlaced{Order: id, Total: total},
		}); err != nil {
			return err
		}
		_, err := s.out.Flush(ctx, postgres.Pgx(tx), b)
		return err
	})
	return id, err
}
