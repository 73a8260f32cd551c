package mongo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

// Read gives published rows again, oldest first by the time of publishing.
func (t *Table) Read(ctx context.Context, f outbox.Filter) (*outbox.Claim, error) {
	at := t.l.column(event.PublishedAt)
	if at == "" {
		return nil, t.l.lacks("does not say what was published when: published rows are deleted or look like any other",
			"consume the topic again from an earlier offset")
	}
	if f.Limit <= 0 {
		f.Limit = 500
	}
	filter, err := t.l.published(&f)
	if err != nil {
		return nil, err
	}
	o := options.Find().SetSort(ascending([]string{at, fieldID})).SetLimit(int64(f.Limit)).SetBatchSize(inOneAnswer(f.Limit))
	if f.EventID == "" {
		if hint := t.l.publishedIndex(); hint != nil {
			o.SetHint(hint)
		}
	}
	claim := &outbox.Claim{}
	err = t.with(ctx, "reading published rows of", func(ctx context.Context, c *driver.Collection) error {
		if f.After != "" {
			after, err := t.after(ctx, c, f.After)
			if err != nil || after == nil {
				return err
			}
			filter = and(filter, bson.A{after})
		}
		cursor, err := c.Find(ctx, filter, o)
		if err != nil {
			return err
		}
		var rows []found
		if err = each(ctx, cursor, func(doc bson.Raw) error {
			rows = append(rows, found{doc: doc})
			return nil
		}); err != nil {
			return err
		}
		claim.Rows, err = t.rows(nil, rows)
		return err
	})
	return claim, err
}

// publishedIndex has published rows by the time of publishing.
func (l *layout) publishedIndex() any {
	if l.states() {
		return l.hint(published, l.column(event.PublishedAt))
	}
	return l.hint("", l.column(event.PublishedAt))
}

// published are the conditions of published rows that a filter wants.
func (l *layout) published(f *outbox.Filter) (bson.D, error) {
	var d bson.D
	if l.states() {
		d = bson.D{is(l.column(event.Status), published)}
	}
	when := op("$type", "date")
	for _, bound := range []struct{ op, text string }{{"$gte", f.Since}, {"$lt", f.Until}} {
		if bound.text == "" {
			continue
		}
		at, err := parseTimestamp(bound.text)
		if err != nil {
			return nil, err
		}
		when = append(when, is(bound.op, at))
	}
	d = append(d, is(l.column(event.PublishedAt), when))
	if f.EventID != "" {
		forms := appendForms(nil, f.EventID)
		ways := bson.A{bson.D{in(l.column(event.EventID), forms)}}
		if l.column(event.EventID) == l.column(event.RowID) {
			ways = append(ways, bson.D{is(l.column(event.EventID), nil), in(fieldID, forms)})
		}
		d = append(d, is("$or", ways))
	}
	if f.Route != "" {
		d = append(d, is(l.column(event.Route), f.Route))
	}
	return d, nil
}

// after is the condition of rows behind one, in the order of reading; nil: it is not there, and
// nothing is behind it.
func (t *Table) after(ctx context.Context, c *driver.Collection, id string) (bson.D, error) {
	ids := idValues([]string{id})
	if len(ids) == 0 {
		return nil, nil
	}
	at := t.l.column(event.PublishedAt)
	last, err := c.FindOne(ctx, bson.D{is(fieldID, ids[0])}, options.FindOne().SetProjection(bson.D{is(at, 1)})).Raw()
	switch {
	case errors.Is(err, driver.ErrNoDocuments):
		return nil, nil
	case err != nil:
		return nil, err
	}
	when := last.Lookup(at)
	return op("$or", bson.A{
		bson.D{is(at, op("$gt", when))},
		bson.D{is(at, when), is(fieldID, op("$gt", ids[0]))},
	}), nil
}

// timestampLayouts are what people write for a moment; without a zone it is UTC.
var timestampLayouts = []string{
	time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999Z07", "2006-01-02T15:04:05.999999999",
	"2006-01-02 15:04:05.999999999", "2006-01-02 15:04Z07:00", "2006-01-02 15:04Z07", "2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02",
}

func parseTimestamp(s string) (time.Time, error) {
	for _, layout := range timestampLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	return time.Time{}, &event.Error{
		Class: event.Halt, Fault: event.FaultUsage, What: fmt.Sprintf("%q is not a time", s), Remedy: "write it like 2026-08-21 10:15:00+00", Anchor: anchorTable,
	}
}
