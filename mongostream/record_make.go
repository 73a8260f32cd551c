package mongostream

import (
	"context"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/event"
)

// Begin makes the source's record, at the present end of the log, unless there is one. It gives the record.
func Begin(ctx context.Context, client *mongo.Client, o Options) (*Record, error) {
	r, err := ReadRecord(ctx, client, o)
	if err != nil || r != nil || !o.writesRecord() {
		return r, err
	}
	place, err := place(ctx, client, &o, start{})
	if err != nil {
		return nil, err
	}
	set, err := o.anew(ctx, client, place, event.PhaseCreated)
	if err != nil {
		return nil, err
	}
	doc := bson.D{{Key: "_id", Value: o.Marker}}
	// Two that begin at once: the second one's position is the later, so the first one's stays.
	_, err = o.sources(client).UpdateOne(ctx, append(doc, bson.E{Key: "epoch", Value: bson.D{{Key: "$exists", Value: false}}}),
		bson.A{bson.D{{Key: "$set", Value: set}}}, options.UpdateOne().SetUpsert(true))
	if err != nil && !mongo.IsDuplicateKeyError(err) {
		return nil, Classify(err, "writing the position")
	}
	return ReadRecord(ctx, client, o)
}

// Replace begins anew at the present end of the log, whatever was remembered. Whoever
// reads from the old position can no longer move it.
func Replace(ctx context.Context, client *mongo.Client, o Options) error {
	if !o.writesRecord() {
		return nil
	}
	place, err := place(ctx, client, &o, start{})
	if err != nil {
		return err
	}
	return o.replace(ctx, client, place, event.PhaseCreated)
}

// MarkPolled remembers that documents are published from the collection from now on, past the
// record's position. Without a record there is nothing to say.
func MarkPolled(ctx context.Context, client *mongo.Client, o Options) error {
	if !o.writesRecord() {
		return nil
	}
	_, err := o.update(ctx, client, bson.D{{Key: "phase", Value: bson.D{{Key: "$ne", Value: event.PhasePolled}}}},
		bson.D{{Key: "phase", Value: event.PhasePolled}}, false)
	return err
}

// Target is where an operator wants to go on: one of its fields.
type Target struct {
	// Token is the hex digits of a resume token, as 'position show' prints them.
	Token string
	// Time is a cluster time: everything that was committed at it or later is read.
	Time bson.Timestamp
	// Now is the present end of the log.
	Now bool
}

// SetPosition moves the source's position because an operator says so. It refuses while
// somebody reads.
func SetPosition(ctx context.Context, client *mongo.Client, o Options, to Target) (*Record, error) {
	r, err := o.unread(ctx, client)
	if err != nil {
		return nil, err
	}
	from := start{time: to.Time}
	switch {
	case to.Token != "":
		if _, ok := parseToken(to.Token); !ok {
			return nil, usage(fmt.Sprintf("%q is no resume token", cut(to.Token, 40)), "give the hex digits that 'walrelay position show' prints")
		}
		from = start{token: remembered(r, to.Token)}
	case !to.Now && to.Time.IsZero():
		return nil, usage("no position is given", "give a token, a time, or say that the present is meant")
	}
	place, err := place(ctx, client, &o, from)
	if err != nil {
		return nil, err
	}
	if to.Token != "" {
		place = placeOf(from.token)
	}
	facts, err := ReadFacts(ctx, client)
	if err != nil {
		return nil, err
	}
	if err := o.usable(ctx, client, place, facts); err != nil {
		return nil, err
	}
	if err := o.replace(ctx, client, place, event.PhaseStreaming); err != nil {
		return nil, err
	}
	return ReadRecord(ctx, client, o)
}

// usable refuses a place that a stream could not begin at.
func (o *Options) usable(ctx context.Context, client *mongo.Client, p Place, f Facts) error {
	to := &Record{Marker: o.Marker, Database: o.Database, Collection: o.Collection, Place: p, Print: o.fingerprint()}
	if err := judge(to, f, o); err != nil {
		return err
	}
	return probe(ctx, client, o, to.start(o))
}

// unread is the source's record, unless somebody reads.
func (o *Options) unread(ctx context.Context, client *mongo.Client) (*Record, error) {
	r, err := ReadRecord(ctx, client, *o)
	if err == nil && r != nil && r.active() {
		return nil, precondition(AnchorStandby, fmt.Sprintf("the source is read by %s", r.Holder), "stop that relay first")
	}
	return r, err
}

// remembered is the token with these digits, whole where the record has it.
func remembered(r *Record, data string) bson.Raw {
	if r != nil {
		for _, p := range append([]Place{r.Place}, r.Earlier...) {
			if p.Data == data {
				return p.Token
			}
		}
	}
	return tokenOf(data)
}

// tokenOf is a token of its digits alone.
func tokenOf(data string) bson.Raw {
	doc, err := bson.Marshal(bson.D{{Key: "_data", Value: data}})
	if err != nil {
		panic(err) // one string
	}
	return doc
}

// place opens a stream and asks the server where that is.
func place(ctx context.Context, client *mongo.Client, o *Options, from start) (Place, error) {
	c, r, err := openCursor(ctx, client, o, from)
	if err != nil {
		return Place{}, Classify(err, "opening a change stream")
	}
	defer c.close(ctx)
	if len(r.end) == 0 {
		return Place{}, precondition(AnchorVersion, "the server gives no position to an idle change stream", "use MongoDB 4.4 or later (tested with 6.0); or write capture: poll")
	}
	return placeOf(r.end), nil
}

// anew is all that a record says besides its name.
func (o *Options) anew(ctx context.Context, client *mongo.Client, p Place, phase event.Phase) (bson.D, error) {
	facts, err := ReadFacts(ctx, client)
	if err != nil {
		return nil, err
	}
	literal := func(v any) bson.D { return bson.D{{Key: "$literal", Value: v}} }
	return append(p.move(),
		bson.E{Key: "source", Value: literal(o.Source)},
		bson.E{Key: "database", Value: literal(o.Database)},
		bson.E{Key: "collection", Value: literal(o.Collection)},
		bson.E{Key: "print", Value: o.fingerprint()},
		bson.E{Key: "collection_uuid", Value: bson.Binary{}},
		bson.E{Key: "replica_set", Value: literal(facts.Set)},
		bson.E{Key: "server_version", Value: literal(facts.Version)},
		bson.E{Key: "phase", Value: phase},
		bson.E{Key: "events", Value: bson.D{{Key: "$ifNull", Value: bson.A{"$events", int64(0)}}}},
		bson.E{Key: "epoch", Value: bson.D{{Key: "$add", Value: bson.A{bson.D{{Key: "$ifNull", Value: bson.A{"$epoch", int64(0)}}}, int64(1)}}}},
		bson.E{Key: "holder", Value: ""},
		bson.E{Key: "lease_until", Value: time.Unix(0, 0)},
	), nil
}

func (o *Options) replace(ctx context.Context, client *mongo.Client, p Place, phase event.Phase) error {
	set, err := o.anew(ctx, client, p, phase)
	if err != nil {
		return err
	}
	_, err = o.update(ctx, client, nil, set, true)
	return err
}

// End is the end of the log now: whatever is committed already lies below.
func End(ctx context.Context, client *mongo.Client) (event.Position, error) {
	facts, err := ReadFacts(ctx, client)
	if err != nil {
		return event.Position{}, err
	}
	return AtTime(after(facts.Applied)), nil
}
