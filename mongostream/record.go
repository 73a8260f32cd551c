package mongostream

import (
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/walrelay/walrelay/event"
)

// Record is what walrelay remembers of a source, in the source's own database: a
// document of the collection Options.SourcesCollection. It is position and lease in
// one, so that who may move the position and where it is cannot come apart.
type Record struct {
	Marker     string `bson:"_id"`
	Source     string `bson:"source"`
	Database   string `bson:"database"`
	Collection string `bson:"collection"`

	Place `bson:",inline"`
	// Earlier are the last positions before, the newest first, a minute or more apart.
	Earlier []Place `bson:"earlier"`

	// Print is the hash of what a token depends on: namespace and pipeline.
	Print string `bson:"print"`
	// CollectionUUID is that of the collection whose events were read last; empty: none yet.
	CollectionUUID bson.Binary `bson:"collection_uuid"`
	// Set identifies the replica set, Version is its server's.
	Set     string      `bson:"replica_set"`
	Version string      `bson:"server_version"`
	Phase   event.Phase `bson:"phase"`
	// Events counts what was handed out, over all processes; more or less, after a kill.
	Events int64 `bson:"events"`

	// Skip is the token of an event that an operator had passed by because no stream can carry it.
	Skip bson.Raw `bson:"skip,omitempty"`

	// Epoch rises whenever the position changes hands. Whoever writes with an older one hits nothing.
	Epoch int64 `bson:"epoch"`
	// Holder may read and write until LeaseUntil, by the server's clock; empty: nobody does.
	Holder     string    `bson:"holder"`
	LeaseUntil time.Time `bson:"lease_until"`
	// Now is the server's clock when the record was read; not stored.
	Now time.Time `bson:"now,omitempty"`
}

// Place is a position as it is stored.
type Place struct {
	// Token is the resume token as the server gave it; Data its hex digits, which sort as the stream does.
	Token bson.Raw `bson:"token"`
	Data  string   `bson:"data"`
	// Kind: event, invalidate, time or unknown (see tokenParts).
	Kind        string         `bson:"kind"`
	ClusterTime bson.Timestamp `bson:"cluster_time"`
	SavedAt     time.Time      `bson:"saved_at"`
}

// Position is where the record stands.
func (r *Record) Position() event.Position { return event.AtToken(r.Data) }

// active reports whether somebody holds the lease.
func (r *Record) active() bool { return r.Holder != "" && r.LeaseUntil.After(r.Now) }

// ReadRecord reads the source's record; nil where there is none or no place for one.
func ReadRecord(ctx context.Context, client *mongo.Client, o Options) (*Record, error) {
	if !o.writesRecord() {
		return nil, nil
	}
	cur, err := o.sources(client).Aggregate(ctx, bson.A{
		bson.D{{Key: "$match", Value: bson.D{{Key: "_id", Value: o.Marker}}}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "now", Value: "$$NOW"}}}},
	})
	if err != nil {
		return nil, Classify(err, "reading the position")
	}
	defer func() { _ = cur.Close(context.WithoutCancel(ctx)) }()
	if !cur.Next(ctx) {
		return nil, Classify(cur.Err(), "reading the position")
	}
	var r Record
	if err := cur.Decode(&r); err != nil {
		return nil, errRecord(&o, err)
	}
	return &r, nil
}

func errRecord(o *Options, err error) error {
	e := gap(AnchorPositionLost, "the position's record in "+o.Database+"."+o.SourcesCollection()+" cannot be understood", remedyLost)
	e.Cause = err
	return e
}

// sources is the collection of the records. What is read there must not go back
// with a failover, nor what is written.
func (o *Options) sources(client *mongo.Client) *mongo.Collection {
	return client.Database(o.Database).Collection(o.SourcesCollection(),
		options.Collection().SetReadConcern(readconcern.Majority()).SetWriteConcern(writeconcern.Majority()))
}

// update changes the source's record by an update pipeline and gives what became
// of it; nil: the filter found none.
func (o *Options) update(ctx context.Context, client *mongo.Client, filter bson.D, set bson.D, upsert bool) (*Record, error) {
	filter = append(bson.D{{Key: "_id", Value: o.Marker}}, filter...)
	res := o.sources(client).FindOneAndUpdate(ctx, filter, bson.A{bson.D{{Key: "$set", Value: set}}},
		options.FindOneAndUpdate().SetReturnDocument(options.After).SetUpsert(upsert))
	var r Record
	err := res.Decode(&r)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return nil, nil
	}
	if err != nil {
		return nil, Classify(err, "writing the position")
	}
	return &r, nil
}

// placeOf describes a token.
func placeOf(token bson.Raw) Place {
	p := Place{Token: token, Data: tokenData(token)}
	parts, _ := parseToken(p.Data)
	p.Kind, p.ClusterTime = parts.kind(), parts.At
	return p
}

// earlierMost positions are kept, at least earlierApart from each other.
const (
	earlierMost  = 3
	earlierApart = time.Minute
)

// move is the part of an update pipeline that stores a place, and keeps the one before for an operator
// who must go back.
func (p Place) move() bson.D {
	literal := func(v any) bson.D { return bson.D{{Key: "$literal", Value: v}} }
	kept := bson.D{{Key: "$ifNull", Value: bson.A{"$earlier", bson.A{}}}}
	before := bson.D{
		{Key: "token", Value: "$token"},
		{Key: "data", Value: "$data"},
		{Key: "kind", Value: "$kind"},
		{Key: "cluster_time", Value: "$cluster_time"},
		{Key: "saved_at", Value: "$saved_at"},
	}
	// The epoch's own beginning stands for "none yet".
	newest := bson.D{{Key: "$ifNull", Value: bson.A{bson.D{{Key: "$first", Value: "$earlier.saved_at"}}, time.Unix(0, 0)}}}
	due := bson.D{{Key: "$and", Value: bson.A{
		bson.D{{Key: "$gt", Value: bson.A{"$saved_at", nil}}},
		bson.D{{Key: "$gte", Value: bson.A{"$saved_at", bson.D{{Key: "$add", Value: bson.A{newest, earlierApart.Milliseconds()}}}}}},
	}}}
	return bson.D{
		{Key: "earlier", Value: bson.D{{Key: "$cond", Value: bson.A{
			due,
			bson.D{{Key: "$slice", Value: bson.A{bson.D{{Key: "$concatArrays", Value: bson.A{bson.A{before}, kept}}}, earlierMost}}},
			kept,
		}}}},
		{Key: "token", Value: literal(p.Token)},
		{Key: "data", Value: literal(p.Data)},
		{Key: "kind", Value: literal(p.Kind)},
		{Key: "cluster_time", Value: literal(p.ClusterTime)},
		{Key: "saved_at", Value: "$$NOW"},
	}
}
