package mongo

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/event"
)

// Fields that a preset has beside those that the schema maps.
const (
	fieldID           = "_id"
	fieldCreatedAt    = "created_at"
	fieldProcessingAt = "processing_at"
	fieldClaimToken   = "claim_token"
	fieldLastError    = "last_error"
	fieldAttempts     = "attempts"
)

// The states.
const (
	pending    = "pending"
	processing = "processing"
	published  = "published"
	failed     = "failed"
)

// layout is what is known of one collection: the names of its fields, and its indexes as
// they were when it was opened.
type layout struct {
	database, name string
	schema         event.Schema
	hlcLast        bool
	indexes        atomic.Pointer[[]index]
}

type index struct {
	name    string
	keys    []string
	state   string // rows in this state alone are in it; empty: all are
	unusual bool   // not to be hinted at
}

// relation is how people call the collection, and what events of it say.
func (l *layout) relation() string { return l.database + "." + l.name }

// states: rows of the preset carry status.
func (l *layout) states() bool { return l.schema.Preset == event.Forze }

// column is the name of a field in documents; empty: they have none.
func (l *layout) column(f event.Field) string { return l.schema.Columns[f] }

// order are the fields that rows are ordered by.
//
//	forze     hlc, created_at, id
//	basic     created_at, _id
//	debezium  _id, which as an ObjectId is nearly the order of writing
//
// Documents of the basic preset have no seq here: there is nothing that counts in MongoDB.
func (l *layout) order() []string {
	switch l.schema.Preset {
	case event.Forze:
		return []string{l.column(event.HLC), fieldCreatedAt, l.column(event.RowID)}
	case event.Basic:
		return []string{l.column(event.OccurredAt), fieldID}
	default:
		return []string{fieldID}
	}
}

// madeAt is the field that says when a row was made; empty: nothing does.
func (l *layout) madeAt() string {
	switch l.schema.Preset {
	case event.Forze:
		return fieldCreatedAt
	default:
		return l.column(event.OccurredAt)
	}
}

// claimKeys are the keys of the index that claims walk.
func (l *layout) claimKeys() []string {
	switch l.schema.Preset {
	case event.Forze:
		return append([]string{l.column(event.Status), l.column(event.AvailableAt)}, l.order()...)
	case event.Basic:
		return append([]string{l.column(event.PublishedAt)}, l.order()...)
	default:
		return l.order()
	}
}

// hint is the index to use; nil leaves it to the server, which reads and sorts more than is
// wanted. state is the one that all rows asked for are in.
func (l *layout) hint(state string, keys ...string) any {
	for _, i := range *l.indexes.Load() {
		if !i.unusual && (i.state == "" || i.state == state) && len(i.keys) >= len(keys) && slices.Equal(i.keys[:len(keys)], keys) {
			return i.name
		}
	}
	return nil
}

var byID = bson.D{{Key: fieldID, Value: 1}}

// readLayout looks at the collection.
func (d *Database) readLayout(ctx context.Context) (*layout, error) {
	l := &layout{database: d.o.Database, name: d.o.Collection, schema: d.o.Schema, hlcLast: d.o.MissingHLC == HLCLast}
	err := d.with(ctx, l.name, "looking at collection "+l.relation(), func(ctx context.Context, c *driver.Collection) error {
		found, err := c.Database().ListCollectionSpecifications(ctx, bson.D{{Key: "name", Value: l.name}},
			options.ListCollections().SetNameOnly(true).SetAuthorizedCollections(true))
		switch {
		case err != nil:
			return err
		case len(found) == 0:
			return l.lacks("does not exist, or the user may not read it", "run 'walrelay init' to make it, correct the name, or grant find on it")
		case found[0].Type != "collection":
			return l.lacks("is a "+found[0].Type+": rows of it cannot be marked", "name the collection that the application writes to")
		}
		return l.readIndexes(ctx, c)
	})
	if err != nil {
		return nil, err
	}
	return l, l.check()
}

func (l *layout) readIndexes(ctx context.Context, c *driver.Collection) error {
	cursor, err := c.Indexes().List(ctx)
	if err != nil {
		return err
	}
	defer cursor.Close(ctx)
	var list []index
	for cursor.Next(ctx) {
		var i struct {
			Name      string   `bson:"name"`
			Key       bson.Raw `bson:"key"`
			Partial   bson.Raw `bson:"partialFilterExpression"`
			Collation bson.Raw `bson:"collation"`
			Sparse    bool     `bson:"sparse"`
			Hidden    bool     `bson:"hidden"`
		}
		if err := cursor.Decode(&i); err != nil {
			return err
		}
		list = append(list, l.indexOf(i.Name, i.Key, i.Partial, i.Sparse || i.Hidden || i.Collation != nil))
	}
	if err := cursor.Err(); err != nil {
		return err
	}
	l.indexes.Store(&list)
	return nil
}

func (l *layout) indexOf(name string, key, partial bson.Raw, unusual bool) index {
	i := index{name: name, unusual: unusual}
	keys, _ := key.Elements()
	for _, k := range keys {
		up, ok := k.Value().AsInt64OK()
		i.unusual = i.unusual || !ok || up != 1
		i.keys = append(i.keys, k.Key())
	}
	if partial == nil {
		return i
	}
	only, _ := partial.Elements()
	state, isState := partial.Lookup(l.column(event.Status)).StringValueOK()
	i.state, i.unusual = state, i.unusual || len(only) != 1 || !isState
	return i
}

// check refuses what nothing can be done with.
func (l *layout) check() error {
	if l.schema.Preset == event.Basic && l.column(event.PublishedAt) == "" {
		return l.lacks("has no field for published_at, without which a published row looks like any other", "map published_at to a field under schema.columns")
	}
	return nil
}

func (l *layout) lacks(what, remedy string) error {
	return &event.Error{
		Class: event.Halt, Fault: event.FaultPrecondition, What: fmt.Sprintf("collection %s %s", l.relation(), what), Remedy: remedy, Anchor: anchorTable,
	}
}
