package mongostream

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// inventory is one picture of the server, which all preconditions are judged by.
type inventory struct {
	Facts
	privileges
	collections map[string]collectionInfo
	// typed: the kinds of the collections are known; it takes the right to list them.
	typed bool
	// indexes by collection; missing where the right to list them is.
	indexes map[string][]indexThere
	blind   []string // collections whose indexes may not be seen
}

type collectionInfo struct {
	Name    string `bson:"name"`
	Type    string `bson:"type"` // collection, view or timeseries
	Options struct {
		Capped bool `bson:"capped"`
	} `bson:"options"`
}

func takeInventory(ctx context.Context, client *mongo.Client, o *Options) (*inventory, error) {
	v := &inventory{collections: map[string]collectionInfo{}, indexes: map[string][]indexThere{}}
	var err error
	if v.Facts, err = ReadFacts(ctx, client); err != nil {
		return nil, err
	}
	if v.privileges, err = readPrivileges(ctx, client); err != nil {
		return nil, err
	}
	db := client.Database(o.Database)
	if err := v.readCollections(ctx, db); err != nil {
		return nil, Classify(err, "listing the collections")
	}
	names := []string{o.Collection}
	if o.keepsBooks() {
		names = append(names, o.ParkedCollection())
	}
	for _, name := range names {
		list, err := readIndexes(ctx, db, name)
		if forbidden(err) {
			v.blind = append(v.blind, name)
			continue
		}
		if err != nil {
			return nil, Classify(err, "listing the indexes of "+name)
		}
		v.indexes[name] = list
	}
	return v, nil
}

// readCollections lists what there is; without the right to it, what may be seen of it.
func (v *inventory) readCollections(ctx context.Context, db *mongo.Database) error {
	var list []collectionInfo
	cur, err := db.ListCollections(ctx, bson.D{})
	v.typed = true
	if forbidden(err) {
		v.typed = false
		cur, err = db.ListCollections(ctx, bson.D{}, options.ListCollections().SetNameOnly(true).SetAuthorizedCollections(true))
	}
	if err == nil {
		err = cur.All(ctx, &list)
	}
	for _, c := range list {
		v.collections[c.Name] = c
	}
	return err
}

func (v *inventory) has(collection string) bool {
	_, there := v.collections[collection]
	return there
}

// forbidden reports whether a right was missing.
func forbidden(err error) bool {
	var s mongo.ServerError
	return errors.As(err, &s) && s.HasErrorCode(13)
}
