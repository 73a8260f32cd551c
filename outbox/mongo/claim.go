package mongo

import (
	"context"

	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"

	"github.com/walrelay/walrelay/outbox"
)

// mostRoom bounds the room for rows that is made in advance.
const mostRoom = 10_000

// Claim takes rows, in table order.
func (t *Table) Claim(ctx context.Context, req outbox.Request) (*outbox.Claim, error) {
	if req.Limit <= 0 || nothing(req.Shards) || req.Only != nil && len(req.Only) == 0 {
		return &outbox.Claim{}, nil
	}
	if t.db.o.AfterPublish == Keep {
		return nil, t.l.lacks("is read by claims, but published rows are kept unmarked: each would be published for ever",
			"set after_publish to mark or delete")
	}
	claim := &outbox.Claim{}
	err := t.with(ctx, "claiming rows of", func(ctx context.Context, c *driver.Collection) error {
		if t.claimsRows() {
			return t.claimRows(ctx, c, &req, claim)
		}
		return t.claimLease(ctx, c, &req, claim)
	})
	if err != nil {
		return nil, err
	}
	return claim, nil
}

// safely is the collection as it cannot be rolled back any more: what is published must not
// vanish afterwards.
func safely(c *driver.Collection) *driver.Collection {
	return c.Clone(options.Collection().SetReadConcern(readconcern.Majority()))
}

// claimLease selects the rows of a claim that writes nothing.
func (t *Table) claimLease(ctx context.Context, c *driver.Collection, req *outbox.Request, claim *outbox.Claim) error {
	rows, err := t.l.find(ctx, safely(c), t.l.stretches(req), req.Limit, nil)
	if err != nil {
		return err
	}
	claim.Rows = req.Room[:0]
	if cap(claim.Rows) == 0 && len(rows) > 0 {
		claim.Rows = make([]outbox.Row, 0, min(len(rows), mostRoom))
	}
	claim.Rows, err = t.rows(claim.Rows, rows)
	return err
}
