package mongo

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/event"
)

// Owed reads the ids of all rows that are neither published nor given up, in one pass: a row
// that changes its state meanwhile is seen all the same.
func (t *Table) Owed(ctx context.Context, each func(id string)) error {
	filter := t.l.isPending()
	if t.l.states() {
		filter = bson.D{in(t.l.column(event.Status), bson.A{pending, processing})}
	}
	return t.with(ctx, "listing unpublished rows of", func(ctx context.Context, c *driver.Collection) error {
		rows, err := c.Find(ctx, filter, options.Find().SetProjection(bson.D{is(fieldID, 1)}).SetBatchSize(100_000))
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close(ctx) }()
		for rows.Next(ctx) {
			id, err := idText(rows.Current)
			if err != nil {
				return err
			}
			each(id)
		}
		return rows.Err()
	})
}
