package mongo

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

// Retain deletes published rows that are older than keep, the oldest first. Without an index on
// the time of publishing each look reads the whole collection: init makes one.
func (t *Table) Retain(ctx context.Context, keep time.Duration, batch int) (outbox.Retained, error) {
	var r outbox.Retained
	at := t.l.column(event.PublishedAt)
	if keep <= 0 || at == "" || t.l.schema.Preset == event.Debezium {
		return r, nil // for ever; or published rows are gone already
	}
	if batch <= 0 {
		batch = 10_000
	}
	old := bson.D{is(at, op("$type", "date")), is("$expr", op("$lt", bson.A{"$" + at, op("$subtract", bson.A{"$$NOW", keep.Milliseconds()})}))}
	if t.l.states() {
		old = append(old, is(t.l.column(event.Status), published))
	}
	err := t.with(ctx, "deleting old rows of", func(ctx context.Context, c *driver.Collection) error {
		o := options.Find().SetProjection(bson.D{is(fieldID, 1)}).SetLimit(int64(batch)).SetBatchSize(inOneAnswer(batch))
		if hint := t.l.publishedIndex(); hint != nil {
			o.SetHint(hint).SetSort(ascending([]string{at}))
		}
		cursor, err := c.Find(ctx, old, o)
		if err != nil {
			return err
		}
		var ids bson.A
		if err = each(ctx, cursor, func(doc bson.Raw) error { ids = append(ids, doc.Lookup(fieldID)); return nil }); err != nil || len(ids) == 0 {
			return err
		}
		// A row may have been requeued since.
		done, err := c.DeleteMany(ctx, append(bson.D{in(fieldID, ids)}, old...), options.DeleteMany().SetHint(byID))
		if err == nil {
			r.Rows = done.DeletedCount
		}
		return err
	})
	return r, err
}
