package mongo

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

// Renew tells the database that rows are still being worked at. The token stays the same: a
// renewal whose answer is lost costs nothing, the old fence guards as well as the new one.
func (t *Table) Renew(ctx context.Context, fence outbox.Fence, ids []string) (renewed outbox.Fence, held []string, err error) {
	if len(ids) == 0 {
		return fence, nil, nil
	}
	renewed = fence
	err = t.with(ctx, "renewing claims in", func(ctx context.Context, c *driver.Collection) error {
		mine := append(bson.D{in(fieldID, idValues(ids))}, t.guard(fence)...)
		if t.claimsRows() {
			_, err := c.UpdateMany(ctx, mine, bson.D{is("$currentDate", bson.D{is(fieldProcessingAt, true)})}, options.UpdateMany().SetHint(byID))
			if err != nil {
				return err
			}
		}
		cursor, err := c.Find(ctx, mine, options.Find().SetHint(byID).SetProjection(bson.D{is(fieldID, 1), is(fieldProcessingAt, 1)}))
		if err != nil {
			return err
		}
		return each(ctx, cursor, func(doc bson.Raw) error {
			id, err := idText(doc)
			held = append(held, id)
			if at, ok := doc.Lookup(fieldProcessingAt).TimeOK(); ok && t.claimsRows() && len(held) == 1 {
				renewed = fenceOf(at, tokenOf(fence))
			}
			return err
		})
	})
	return renewed, held, err
}

// Unfinished lists rows that hold their key. Rows that were tried have a due time: a retry and a
// reclaim give them one. So they are found in the index without looking at those that wait for
// their first attempt, except at those that were inserted with one.
func (t *Table) Unfinished(ctx context.Context, shards outbox.Shards, limit int) (rows []outbox.Unfinished, more bool, err error) {
	if !t.l.states() || nothing(shards) {
		return nil, false, nil
	}
	mine := t.l.wanted(&outbox.Request{Shards: shards})
	status, due := t.l.column(event.Status), t.l.column(event.AvailableAt)
	parts := []stretch{
		{filter: and(bson.D{is(status, processing)}, mine), hint: t.l.hint(processing, fieldProcessingAt)},
		{filter: and(bson.D{is(status, pending), is(due, op("$ne", nil)), is(fieldAttempts, op("$gt", 0))}, mine), hint: t.l.hint(pending, t.l.claimKeys()...)},
	}
	// These are few, and the first of them are wanted whole: here the server may sort.
	for i := range parts {
		parts[i].sort = ascending(t.l.order())
	}
	only := append(t.l.fields(append(t.l.keyColumns(), status, t.l.column(event.Route))...), is("due", t.l.isDue()))
	err = t.with(ctx, "listing unfinished rows of", func(ctx context.Context, c *driver.Collection) error {
		found, err := t.l.find(ctx, c, parts, limit+1, only)
		if err != nil {
			return err
		}
		if more = len(found) > limit; more {
			found = found[:limit]
		}
		rows = make([]outbox.Unfinished, len(found))
		for i := range found {
			rows[i] = t.unfinished(found[i].doc)
		}
		return nil
	})
	return rows, more, err
}

func (t *Table) unfinished(doc bson.Raw) outbox.Unfinished {
	var row outbox.Row
	t.row(nil, doc, &row)
	state, _ := doc.Lookup(t.l.column(event.Status)).StringValueOK()
	due, _ := doc.Lookup("due").BooleanOK()
	return outbox.Unfinished{ID: row.ID, Key: row.Key, Route: row.Route, Processing: state == processing, Due: due}
}
