package mongostream

import (
	"context"
	"errors"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/event"
)

// index is one that init makes and check looks for, by its keys: names are whoever's made it.
type index struct {
	collection string
	name       string
	keys       []string // ascending
	unique     bool
	sparse     bool
	partial    bson.D // nil: over all documents
	purpose    string // completes "without it …"
}

// The fields of the contract that no event field stands for.
const (
	fieldCreatedAt    = "created_at"
	fieldProcessingAt = "processing_at"
	fieldClaimToken   = "claim_token"
)

// outboxIndexes are those of the outbox collection. Those of the contract have the
// names that MongoDB gives, so that an application which makes them too finds its own;
// walrelay's are over few documents each, since a document leaves them as it goes on.
func (o *Options) outboxIndexes() []index {
	c := o.Schema.Columns
	at := func(x index) index {
		x.collection = o.Collection
		if x.name == "" {
			x.name = strings.Join(x.keys, "_1_") + "_1"
		}
		return x
	}
	in := func(state string) bson.D { return bson.D{{Key: c[event.Status], Value: state}} }
	var list []index
	switch {
	case c[event.Status] != "" && c[event.AvailableAt] != "":
		list = append(list,
			at(index{keys: []string{c[event.Route], c[event.EventID]}, unique: true, purpose: "the same event can be written twice"}),
			at(index{keys: []string{c[event.Route], c[event.Status], c[event.AvailableAt], fieldCreatedAt}, purpose: "other pollers of the contract scan the collection"}),
			at(index{keys: []string{c[event.Route], c[event.Status], fieldProcessingAt}, purpose: "other pollers of the contract scan the collection for stale claims"}),
			at(index{keys: []string{fieldClaimToken}, sparse: true, purpose: "a claim is read back by a scan of the collection"}),
		)
		order := []string{fieldCreatedAt, c[event.RowID]}
		if c[event.HLC] != "" {
			order = append([]string{c[event.HLC]}, order...)
			list = append(list, at(index{keys: append([]string{c[event.Route], c[event.Status], c[event.AvailableAt]}, order...), purpose: "other pollers of the contract sort all pending documents in memory"}))
		}
		if o.claims() {
			list = append(list,
				at(index{name: "walrelay_pending", keys: append([]string{c[event.Status], c[event.AvailableAt]}, order...), partial: in("pending"), purpose: "each claim sorts all pending documents in memory"}),
				at(index{name: "walrelay_processing", keys: []string{fieldProcessingAt}, partial: in("processing"), purpose: "claims that were left lying are looked for by a scan of the collection"}),
				at(index{name: "walrelay_failed", keys: []string{fieldCreatedAt}, partial: in("failed"), purpose: "failed documents are counted by a scan of the collection"}),
			)
			if o.Retains {
				list = append(list, at(index{name: "walrelay_published", keys: []string{c[event.PublishedAt], "_id"}, partial: in("published"), purpose: "retention scans the collection"}))
			}
		}
	case c[event.PublishedAt] != "" && o.claims():
		list = append(list, at(index{name: "walrelay_pending", keys: []string{c[event.PublishedAt], c[event.OccurredAt], "_id"}, purpose: "each claim scans the collection"}))
	}
	return list
}

// bookIndexes are those of walrelay's own collections.
func (o *Options) bookIndexes() []index {
	if !o.keepsBooks() {
		return nil
	}
	ours := bson.D{{Key: "owner", Value: bson.D{{Key: "$exists", Value: true}}}}
	return []index{
		{collection: o.ParkedCollection(), name: "walrelay_event", keys: []string{"owner", "relation", "row", "event_id", "commit", "ordinal"}, unique: true, partial: ours, purpose: "an event can be parked twice"},
		{collection: o.ParkedCollection(), name: "walrelay_key", keys: []string{"owner", "key", "state", "whole", "relation", "row", "_id"}, purpose: "what is parked of a key is found by a scan"},
	}
}

// keyDocument is the index's specification.
func (x index) keyDocument() bson.D {
	d := make(bson.D, len(x.keys))
	for i, k := range x.keys {
		d[i] = bson.E{Key: k, Value: int32(1)}
	}
	return d
}

// specification is what the command createIndexes takes.
func (x index) specification() bson.D {
	d := bson.D{{Key: "key", Value: x.keyDocument()}, {Key: "name", Value: x.name}}
	if x.unique {
		d = append(d, bson.E{Key: "unique", Value: true})
	}
	if x.sparse {
		d = append(d, bson.E{Key: "sparse", Value: true})
	}
	if x.partial != nil {
		d = append(d, bson.E{Key: "partialFilterExpression", Value: x.partial})
	}
	return d
}

// indexThere is one that the server has.
type indexThere struct {
	Name      string   `bson:"name"`
	Key       bson.D   `bson:"key"`
	Unique    bool     `bson:"unique"`
	Sparse    bool     `bson:"sparse"`
	Hidden    bool     `bson:"hidden"`
	Partial   bson.Raw `bson:"partialFilterExpression"`
	Collation bson.Raw `bson:"collation"`
	Expires   *float64 `bson:"expireAfterSeconds"`
}

// readIndexes lists a collection's indexes; none where there is no such collection.
func readIndexes(ctx context.Context, db *mongo.Database, collection string) (list []indexThere, err error) {
	cur, err := db.Collection(collection).Indexes().List(ctx)
	if err == nil {
		err = cur.All(ctx, &list)
	}
	var s mongo.ServerError
	if errors.As(err, &s) && (s.HasErrorCode(26) || s.HasErrorCode(166)) { // no such collection, or a view
		return nil, nil
	}
	return list, err
}

// serves reports whether the index that is there does what x is for.
func (have *indexThere) serves(x index) bool {
	if have.Hidden || have.Collation != nil || len(have.Key) < len(x.keys) || x.unique && (!have.Unique || len(have.Key) != len(x.keys)) {
		return false
	}
	for i, k := range x.keys {
		if have.Key[i].Key != k || !ascending(have.Key[i].Value) {
			return false
		}
	}
	if have.Partial != nil {
		want, err := bson.Marshal(x.partial)
		return err == nil && x.partial != nil && string(want) == string(have.Partial)
	}
	return !have.Sparse || x.sparse
}

func ascending(v any) bool {
	switch v := v.(type) {
	case int32:
		return v == 1
	case int64:
		return v == 1
	case float64:
		return v == 1
	}
	return false
}

// missing are the indexes of the list that nothing on the server serves for.
func missing(list []index, there map[string][]indexThere) (lack []index) {
	for _, x := range list {
		if !slices.ContainsFunc(there[x.collection], func(have indexThere) bool { return have.serves(x) }) {
			lack = append(lack, x)
		}
	}
	return lack
}
