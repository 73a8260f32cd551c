package mongo

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/event"
)

// Requeue makes failed rows pending again.
func (t *Table) Requeue(ctx context.Context, ids []string) (int, error) {
	if len(ids) == 0 {
		return 0, nil
	}
	if !t.l.states() {
		return 0, t.l.lacks("has no state failed, so that nothing can be requeued", "see the parked events instead: walrelay parked list")
	}
	count := 0
	err := t.with(ctx, "requeueing rows of", func(ctx context.Context, c *driver.Collection) error {
		r, err := c.UpdateMany(ctx, bson.D{in(fieldID, idValues(ids)), is(t.l.column(event.Status), failed)}, bson.D{
			is("$set", bson.D{
				is(t.l.column(event.Status), pending), is(fieldProcessingAt, nil), is(t.l.column(event.PublishedAt), nil),
				is(fieldLastError, nil), is(fieldAttempts, int32(0)), is(t.l.column(event.AvailableAt), nil),
			}),
			is("$unset", bson.D{is(fieldClaimToken, "")}),
		}, options.UpdateMany().SetHint(byID))
		if err == nil {
			count = int(r.ModifiedCount)
		}
		return err
	})
	return count, err
}
