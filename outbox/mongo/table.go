package mongo

import (
	"context"
	"errors"

	driver "go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/mongostream/document"
	"github.com/walrelay/walrelay/outbox"
)

// Table is outbox.Table on MongoDB.
type Table struct {
	db     *Database
	l      *layout
	reader *document.Reader
}

var _ outbox.Table = (*Table)(nil)

// Tables looks at the source's collection and makes a Table for it.
func (d *Database) Tables(ctx context.Context) ([]*Table, error) {
	l, err := d.readLayout(ctx)
	if err != nil {
		return nil, err
	}
	return []*Table{{db: d, l: l, reader: document.New(document.Options{
		Schema: d.o.Schema, Extra: d.o.Extra, Format: d.o.Format, Relation: l.relation(), MaxPayload: d.o.MaxPayload,
	})}}, nil
}

// Relation is database.collection.
func (t *Table) Relation() string { return t.l.relation() }

// Traits say what rows of this collection can carry.
func (t *Table) Traits() outbox.Traits {
	return outbox.Traits{States: t.db.o.AfterPublish != Keep, Retries: t.l.states(), Claims: t.claimsRows()}
}

// claimsRows: a claim writes processing. Where there are no states the lease is the
// claim, whatever was asked for: MongoDB has no lock that outlives a transaction of a minute.
func (t *Table) claimsRows() bool { return t.l.states() && t.db.o.Claim == ClaimRow }

// deletes: a published row is deleted. In the debezium preset that is the only mark.
func (t *Table) deletes() bool {
	return t.db.o.AfterPublish == Delete || t.l.schema.Preset == event.Debezium && t.db.o.AfterPublish != Keep
}

// with calls f with the table's collection.
func (t *Table) with(ctx context.Context, doing string, f func(ctx context.Context, c *driver.Collection) error) error {
	return t.db.with(ctx, t.l.name, doing+" "+t.Relation(), func(ctx context.Context, c *driver.Collection) error {
		err := f(ctx, c)
		var e driver.ServerError
		switch {
		case !errors.As(err, &e):
		case e.HasErrorCodeWithMessage(badValue, "hint provided does not correspond"):
			// Somebody dropped an index. The next call does without it, or uses the one that took its place.
			if err := t.l.readIndexes(ctx, c); err != nil {
				return err
			}
			return &event.Error{Class: event.Retry, What: "an index of collection " + t.Relation() + " has been dropped meanwhile", Anchor: anchorTable}
		case e.HasErrorMessage("$toHashedIndexKey"):
			return t.l.lacks("is to be shared by several relays, but the server has no $toHashedIndexKey to tell keys apart by",
				"use MongoDB 6.0 or later, or let one relay alone read the collection")
		}
		return err
	})
}

const badValue = 2
