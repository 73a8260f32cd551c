package mongo

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/outbox"
)

// listLimit is the length of a page where nobody asks for another.
const listLimit = 100

// List reads entries, without the events themselves.
func (k *Parking) List(ctx context.Context, f outbox.ParkedFilter) ([]outbox.Parked, error) {
	if f.Limit <= 0 {
		f.Limit = listLimit
	}
	filter := k.ours(is(fieldID, bson.D{is("$gt", f.After)}))
	for _, c := range []struct{ field, value string }{
		{"key", outbox.PlainText(f.Key)},
		{"route", outbox.PlainText(f.Route)},
		{"event_id", outbox.PlainText(f.EventID)},
		{"state", string(f.State)},
	} {
		if c.value != "" {
			filter = append(filter, is(c.field, c.value))
		}
	}
	opt := options.Find().SetProjection(withoutEvent).SetSort(byID).SetLimit(int64(f.Limit))
	return k.entries(ctx, "listing parked events", filter, opt)
}

// Show reads one entry, with the event itself where it is kept whole; nil: there is none.
func (k *Parking) Show(ctx context.Context, id int64) (*outbox.Parked, error) {
	list, err := k.entries(ctx, "reading a parked event", k.those([]int64{id}), options.Find())
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[0], nil
}

// Counts counts the source's entries by state.
func (k *Parking) Counts(ctx context.Context) (map[outbox.ParkState]int64, error) {
	counts := map[outbox.ParkState]int64{}
	err := k.db.with(ctx, k.db.parkedCollection(), "counting parked events", func(ctx context.Context, c *driver.Collection) error {
		cursor, err := c.Aggregate(ctx, driver.Pipeline{
			{is("$match", k.ours())},
			{is("$group", bson.D{is(fieldID, "$state"), is("n", bson.D{is("$sum", int64(1))})})},
		})
		if err != nil {
			return err
		}
		var list []struct {
			State outbox.ParkState `bson:"_id"`
			N     int64            `bson:"n"`
		}
		err = cursor.All(ctx, &list)
		for _, g := range list {
			counts[g.State] = g.N
		}
		return err
	})
	return counts, err
}

func (k *Parking) entries(ctx context.Context, doing string, filter bson.D, opt *options.FindOptionsBuilder) (list []outbox.Parked, err error) {
	err = k.db.with(ctx, k.db.parkedCollection(), doing, func(ctx context.Context, c *driver.Collection) error {
		docs, err := find[parkedDocument](ctx, c, filter, opt)
		if err != nil {
			return err
		}
		for i := range docs {
			p, err := k.parked(&docs[i])
			if err != nil {
				return err
			}
			list = append(list, p)
		}
		return nil
	})
	return list, err
}

// Retry lets parked events go again: rows become pending as if they were new, events kept
// whole are found by Whole. It answers how many entries it changed; those that are on
// their way already, wait behind another, or were kept half made are not among them.
func (k *Parking) Retry(ctx context.Context, ids []int64) (changed int, err error) {
	err = k.release(ctx, "letting parked events go", ids, func(ctx context.Context, at place, t *Table, rows []string) error {
		if len(rows) > 0 {
			if _, err := t.Requeue(ctx, rows); err != nil {
				return err
			}
		}
		may := append(k.those(ids), is("state", outbox.StateParked), is("partial", bson.D{is("$ne", true)}))
		r, err := at.parked.UpdateMany(ctx, may, bson.D{is("$set", bson.D{is("state", outbox.StateRetrying)})})
		if err == nil {
			changed = int(r.ModifiedCount)
		}
		return err
	})
	return changed, err
}

// Drop gives events up. A row stays failed, and becomes so again if it was told to
// go and was not claimed yet.
func (k *Parking) Drop(ctx context.Context, ids []int64) (dropped int, err error) {
	err = k.release(ctx, "dropping parked events", ids, func(ctx context.Context, at place, t *Table, rows []string) error {
		if len(rows) > 0 {
			waiting := bson.D{in(fieldID, idValues(rows)), is(t.statusField(), pending)}
			change := bson.D{is("$set", bson.D{is(t.statusField(), failed), is(fieldLastError, "dropped by an operator")})}
			if _, err := at.rows.UpdateMany(ctx, waiting, change, options.UpdateMany().SetHint(byID)); err != nil {
				return err
			}
		}
		r, err := at.parked.DeleteMany(ctx, k.those(ids))
		if err == nil {
			dropped = int(r.DeletedCount)
		}
		return err
	})
	return dropped, err
}

// release calls f with the rows that entries name and that can be failed.
func (k *Parking) release(ctx context.Context, doing string, ids []int64, f func(ctx context.Context, at place, t *Table, rows []string) error) error {
	if len(ids) == 0 {
		return nil
	}
	t, err := k.table(ctx)
	if err != nil {
		return err
	}
	return k.transact(ctx, doing, func(ctx context.Context, at place) error {
		named, err := find[parkedDocument](ctx, at.parked, append(k.those(ids), is("whole", false)),
			options.Find().SetProjection(bson.D{is("relation", 1), is("row", 1)}))
		if err != nil {
			return err
		}
		var rows []string
		for i := range named {
			if t.fails() && k.isRow(named[i].Relation, named[i].Row) {
				rows = append(rows, named[i].Row)
			}
		}
		return f(ctx, at, t, rows)
	})
}

// find reads all documents that a filter finds.
func find[T any](ctx context.Context, c *driver.Collection, filter bson.D, opt *options.FindOptionsBuilder) (list []T, err error) {
	cursor, err := c.Find(ctx, filter, opt)
	if err == nil {
		err = cursor.All(ctx, &list)
	}
	return list, err
}
