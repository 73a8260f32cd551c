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

// sample is how many rows at the front of each stretch of the index are looked at
// for the oldest one: the stretch is in table order, which is nearly that of age.
const sample = 100

// Figures reads the table's gauges. Each count stops at outbox.CountLimit. MongoDB has no dead tuples.
func (t *Table) Figures(ctx context.Context) (outbox.Figures, error) {
	var f outbox.Figures
	err := t.with(ctx, "reading the figures of", func(ctx context.Context, c *driver.Collection) error {
		for _, g := range t.gauges(&f) {
			o := options.Count().SetLimit(outbox.CountLimit)
			if g.hint != nil {
				o.SetHint(g.hint)
			}
			n, err := c.CountDocuments(ctx, g.filter, o)
			if err != nil {
				return err
			}
			*g.to = n
		}
		age, err := t.oldest(ctx, c)
		f.OldestPending = age
		return err
	})
	if err != nil {
		return outbox.Figures{}, err
	}
	return f, nil
}

type gauge struct {
	stretch
	to *int64
}

func (t *Table) gauges(f *outbox.Figures) []gauge {
	claims := t.l.claimKeys()
	if !t.l.states() {
		return []gauge{{stretch{filter: t.l.isPending(), hint: t.l.hint("", claims...)}, &f.Pending}}
	}
	status, waiting := t.l.column(event.Status), t.l.hint(pending, claims...)
	return []gauge{
		{stretch{filter: bson.D{is(status, pending)}, hint: waiting}, &f.Pending},
		{stretch{filter: bson.D{is(status, pending), is(claims[1], op("$ne", nil)), is(fieldAttempts, op("$gt", 0))}, hint: waiting}, &f.Retrying},
		{stretch{filter: bson.D{is(status, processing)}, hint: t.l.hint(processing, fieldProcessingAt)}, &f.Processing},
		{stretch{filter: bson.D{is(status, failed)}, hint: t.l.hint(failed, fieldCreatedAt)}, &f.Failed},
	}
}

// oldest is the age of the oldest row that is not published, by the server's clock.
func (t *Table) oldest(ctx context.Context, c *driver.Collection) (time.Duration, error) {
	made := t.l.madeAt()
	if made == "" {
		return 0, nil
	}
	var oldest time.Duration
	for _, s := range t.fronts() {
		pipeline := bson.A{op("$match", s.filter)}
		if s.sort != nil {
			pipeline = append(pipeline, op("$sort", s.sort))
		}
		date := op("$cond", bson.A{op("$eq", bson.A{op("$type", "$"+made), "date"}), "$" + made, nil})
		pipeline = append(pipeline, op("$limit", sample), op("$group", bson.D{
			is(fieldID, nil), is("age", op("$max", op("$subtract", bson.A{"$$NOW", date}))),
		}))
		o := options.Aggregate()
		if s.hint != nil {
			o.SetHint(s.hint)
		}
		cursor, err := c.Aggregate(ctx, pipeline, o)
		if err != nil {
			return 0, err
		}
		err = each(ctx, cursor, func(doc bson.Raw) error {
			age, _ := doc.Lookup("age").AsInt64OK()
			oldest = max(oldest, time.Duration(age)*time.Millisecond)
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	return oldest, nil
}

// fronts are the places where the oldest row may be.
func (t *Table) fronts() []stretch {
	claims := t.l.claimKeys()
	by := ascending(claims)
	if !t.l.states() {
		return []stretch{{filter: t.l.isPending(), sort: by, hint: t.l.hint("", claims...)}}
	}
	hint, waiting := t.l.hint(pending, claims...), bson.D{is(t.l.column(event.Status), pending)}
	return []stretch{
		{filter: append(waiting[:1:1], is(claims[1], nil)), sort: by, hint: hint},
		{filter: append(waiting[:1:1], is(claims[1], op("$ne", nil))), sort: by, hint: hint},
		{filter: bson.D{is(t.l.column(event.Status), processing)}, hint: t.l.hint(processing, fieldProcessingAt)},
	}
}
