package mongo

import (
	"context"
	"fmt"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

const anchorParkingFull event.Anchor = "parking-full"

// Parking is outbox.Parking on MongoDB: the collection parked of walrelay's own.
//
// An entry is one of two kinds. Where a row can be failed, the row stays the event and the
// entry only names it. Everything else is kept whole: the record as it was routed, and its key
// and value as they are. Rows and entries change together, in transactions; on a server that has none
// the entry is written first: one whose row does not agree with it is put right by Held.
//
// There is no question of what can be seen yet: the stream brings what the majority has, and a
// transaction that the majority takes has read no less.
type Parking struct {
	db *Database

	mu  sync.Mutex
	own *Table // made when first needed
}

var _ outbox.Parking = (*Parking)(nil)

// Parking is the source's parking store; it needs bookkeeping.
func (d *Database) Parking() *Parking { return &Parking{db: d} }

// Source is the name of the source in the configuration.
func (k *Parking) Source() string { return k.db.o.Source }

// place is where one transaction works.
type place struct {
	rows, parked *driver.Collection
	atomic       bool // it is one
}

func (k *Parking) transact(ctx context.Context, doing string, f func(ctx context.Context, at place) error) error {
	return k.db.transact(ctx, doing, func(ctx context.Context, db *driver.Database, atomic bool) error {
		return f(ctx, place{db.Collection(k.db.o.Collection), db.Collection(k.db.parkedCollection()), atomic})
	})
}

// isRow says whether the event is a row of the source's collection.
func (k *Parking) isRow(relation, row string) bool {
	return row != "" && relation == k.db.o.Database+"."+k.db.o.Collection
}

// table is the source's collection. It looks at the server, which no transaction can do.
func (k *Parking) table(ctx context.Context) (*Table, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.own == nil {
		tables, err := k.db.Tables(ctx)
		if err != nil {
			return nil, err
		}
		k.own = tables[0]
	}
	return k.own, nil
}

// tableOf is the table that the event is a row of; nil where there is none.
func (k *Parking) tableOf(ctx context.Context, p *outbox.Parked) (*Table, error) {
	if !k.isRow(p.Relation, p.Row) {
		return nil, nil
	}
	return k.table(ctx)
}

// fails says whether a row of the table can be failed and tried again.
func (t *Table) fails() bool { return t != nil && t.l.states() && t.db.o.AfterPublish != Keep }

func (t *Table) statusField() string { return t.l.column(event.Status) }

// Park puts one event aside. A row that was published meanwhile stays so: there is
// nothing to put aside any more.
func (k *Parking) Park(ctx context.Context, p outbox.Parked) error {
	t, err := k.tableOf(ctx, &p)
	if err != nil {
		return err
	}
	return k.transact(ctx, "putting event "+p.EventID+" aside", func(ctx context.Context, at place) error {
		if !t.fails() {
			// The row of a collection without failed rows is done with, or the table reader
			// would publish it. One that was claimed is settled by whoever claimed it.
			if p.Commit.IsZero() || k.db.o.AfterPublish == Keep {
				return k.keepWhole(ctx, at, p, outbox.StateParked, nil)
			}
			return k.keepWhole(ctx, at, p, outbox.StateParked, t)
		}
		there, state, err := t.look(ctx, at, p.Row)
		switch {
		case err != nil:
			return err
		case there && state != published:
			row := p
			row.Commit, row.Ordinal, row.Record = event.Position{}, 0, nil // the row is its identity
			if err := k.enter(ctx, at, &row, outbox.StateParked); err != nil {
				return err
			}
			return t.fail(ctx, at, p.Row, p.Error)
		case there, p.Record == nil:
			return nil // published meanwhile, or deleted by whoever it belonged to
		}
		return k.keepWhole(ctx, at, p, outbox.StateParked, nil)
	})
}

// fail makes a row failed unless it is published.
func (t *Table) fail(ctx context.Context, at place, row, why string) error {
	_, err := at.rows.UpdateOne(ctx, bson.D{in(fieldID, idValues([]string{row})), is(t.statusField(), op("$ne", published))},
		op("$set", bson.D{is(t.statusField(), failed), is(fieldLastError, outbox.Printable(why))}))
	return err
}

// look reads whether a row is there, and its state; where rows carry none it is pending or published.
func (t *Table) look(ctx context.Context, at place, row string) (there bool, state string, err error) {
	found, err := at.rows.Find(ctx, bson.D{in(fieldID, idValues([]string{row}))}, options.Find().SetProjection(t.stateFields()))
	if err != nil {
		return false, "", err
	}
	err = each(ctx, found, func(doc bson.Raw) error {
		there = true
		switch {
		case t.l.states():
			state, _ = doc.Lookup(t.statusField()).StringValueOK()
		case t.isOpen(doc):
			state = pending
		default:
			state = published
		}
		return nil
	})
	return there, state, err
}

// LeaveBehind puts an event aside whose key is held by another one. A row that is there is
// left as it is: pending, it is found again; in any other state it is somebody's already. Behind
// an event that is kept whole, a pending row is kept whole too: it must not be found before that.
func (k *Parking) LeaveBehind(ctx context.Context, p outbox.Parked) error {
	t, err := k.tableOf(ctx, &p)
	if err != nil {
		return err
	}
	return k.transact(ctx, "leaving event "+p.EventID+" behind its key", func(ctx context.Context, at place) error {
		if t == nil || k.db.o.AfterPublish == Keep {
			return k.keepWhole(ctx, at, p, outbox.StateBehind, nil)
		}
		there, state, err := t.look(ctx, at, p.Row)
		if err != nil || there && state != pending {
			return err
		}
		if !there {
			return k.keepWhole(ctx, at, p, outbox.StateBehind, nil)
		}
		whole, err := k.wholeBehind(ctx, at, p.Key)
		if err != nil || !whole {
			return err
		}
		return k.keepWhole(ctx, at, p, outbox.StateBehind, t)
	})
}

// wholeBehind says whether an event is kept whole behind the key.
func (k *Parking) wholeBehind(ctx context.Context, at place, key string) (bool, error) {
	if key == "" {
		return false, nil
	}
	n, err := at.parked.CountDocuments(ctx, k.ours(is("key", outbox.PlainText(key)), is("state", outbox.StateBehind), is("whole", true)),
		options.Count().SetLimit(1))
	return n > 0, err
}

// keepWhole puts the event itself into the store, within the budget. The row of a table that is given
// is done with in the same transaction.
func (k *Parking) keepWhole(ctx context.Context, at place, p outbox.Parked, state outbox.ParkState, t *Table) error {
	if p.Record == nil {
		return fmt.Errorf("event %s is to be kept whole and came without its record", p.EventID)
	}
	err := k.enter(ctx, at, &p, state)
	if err == nil && t != nil {
		_, err = t.Mark(ctx, []outbox.Mark{{ID: p.Row}})
	}
	return err
}

// ours is the beginning of every filter.
func (k *Parking) ours(more ...bson.E) bson.D {
	return append(bson.D{is("owner", k.db.o.Owner)}, more...)
}

func (k *Parking) full(p *outbox.Parked) error {
	return &event.Error{
		Class: event.Halt, Fault: event.FaultPrecondition, Anchor: anchorParkingFull,
		What: fmt.Sprintf("%d events of source %s are kept whole in %s.%s, which is all that may be; event %s finds no room", k.db.o.ParkedBudget,
			k.db.o.Source, k.db.o.Database, k.db.parkedCollection(), p.EventID),
		Remedy: "let the parked events go with 'walrelay parked retry', or give them up with 'walrelay parked drop', then start the relay again",
	}
}
