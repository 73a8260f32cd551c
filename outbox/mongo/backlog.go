package mongo

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

// backlogPart is how many rows a [Backlog] watches at a time.
const backlogPart = 100_000

// Backlog is the rows that were not published at one moment, and of them those that
// are not published yet. Rows that come later do not count, so that a collection that is written
// to all the time can be waited for.
type Backlog struct {
	t     *Table
	loose []string
	ids   []string
	parts int // how many more have to be looked at
}

// Backlog takes the moment. Rows on routes that are loose are not held by keys.
func (t *Table) Backlog(ctx context.Context, loose []string) (*Backlog, error) {
	b := &Backlog{t: t, loose: loose}
	err := t.with(ctx, "counting unpublished rows of", func(ctx context.Context, c *driver.Collection) error {
		total := int64(0)
		for _, s := range t.l.open() {
			n, err := c.CountDocuments(ctx, s.filter)
			if err != nil {
				return err
			}
			total += n
		}
		b.parts = int((total + backlogPart - 1) / backlogPart)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return b, b.next(ctx, nil)
}

// open are the stretches of rows that are neither published nor given up.
func (l *layout) open() []stretch {
	if !l.states() {
		return []stretch{{filter: l.isPending(), sort: ascending(l.claimKeys()), hint: l.hint("", l.claimKeys()...)}}
	}
	order := ascending(l.order()) // with rows that are not due among them: this alone does sort
	status := l.column(event.Status)
	return []stretch{
		{filter: bson.D{is(status, pending)}, sort: order, hint: l.hint(pending, l.claimKeys()...)},
		{filter: bson.D{is(status, processing)}, sort: order, hint: l.hint(processing, fieldProcessingAt)},
	}
}

// next takes the oldest rows, where more parts are owed: new rows come after them.
func (b *Backlog) next(ctx context.Context, held []string) error {
	if b.parts == 0 {
		return nil
	}
	b.parts--
	return b.read(ctx, held, nil)
}

// Left looks again, and answers how many rows are watched and not published yet. Those
// whose key is among held wait for a human, and do not count.
func (b *Backlog) Left(ctx context.Context, held []string) (int, error) {
	if len(b.ids) > 0 {
		if err := b.read(ctx, held, b.ids); err != nil {
			return 0, err
		}
	}
	if len(b.ids) == 0 && b.parts > 0 {
		if err := b.next(ctx, held); err != nil {
			return 0, err
		}
	}
	return len(b.ids), nil
}

// read reads the ids of open rows; of watched ones alone, where there are any.
func (b *Backlog) read(ctx context.Context, held, watched []string) error {
	more := b.t.l.wanted(&outbox.Request{Held: held, Loose: b.loose, Only: watched})
	parts := b.t.l.open()
	for i := range parts {
		parts[i].filter = and(parts[i].filter, more)
		if watched != nil {
			parts[i].sort, parts[i].hint = nil, byID
		}
	}
	var ids []string
	err := b.t.with(ctx, "looking for unpublished rows of", func(ctx context.Context, c *driver.Collection) error {
		rows, err := b.t.l.find(ctx, c, parts, backlogPart, b.t.l.fields())
		if err != nil {
			return err
		}
		for i := range rows {
			id, err := idText(rows[i].doc)
			if err != nil {
				return err
			}
			ids = append(ids, id)
		}
		return nil
	})
	if err == nil {
		b.ids = ids
	}
	return err
}
