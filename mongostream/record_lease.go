package mongostream

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// lease is the hold that one stream has on its source's record. Each write names
// holder and epoch: once somebody else took over, ours hit nothing.
type lease struct {
	holder string
	epoch  int64
}

func (l lease) filter() bson.D {
	return bson.D{{Key: "holder", Value: l.holder}, {Key: "epoch", Value: l.epoch}}
}

// until is the end of a lease that begins now, by the server's clock.
func (o *Options) until() bson.D {
	return bson.D{{Key: "$add", Value: bson.A{"$$NOW", o.LeaseTTL.Milliseconds()}}}
}

// acquire takes the lease, or finds who has it (got false). The epoch rises
// unless it is still ours. nil: there is no record.
func (o *Options) acquire(ctx context.Context, client *mongo.Client, mine lease) (r *Record, got bool, err error) {
	ours := bson.D{{Key: "$and", Value: bson.A{
		bson.D{{Key: "$eq", Value: bson.A{"$holder", bson.D{{Key: "$literal", Value: mine.holder}}}}},
		bson.D{{Key: "$eq", Value: bson.A{"$epoch", mine.epoch}}},
	}}}
	free := bson.D{{Key: "$or", Value: bson.A{
		ours,
		bson.D{{Key: "$eq", Value: bson.A{"$holder", ""}}},
		bson.D{{Key: "$lte", Value: bson.A{"$lease_until", "$$NOW"}}},
	}}}
	choose := func(condition, yes, no any) bson.D {
		return bson.D{{Key: "$cond", Value: bson.A{condition, yes, no}}}
	}
	next := bson.D{{Key: "$add", Value: bson.A{"$epoch", 1}}}
	r, err = o.update(ctx, client, nil, bson.D{
		{Key: "epoch", Value: choose(ours, "$epoch", choose(free, next, "$epoch"))},
		{Key: "lease_until", Value: choose(free, o.until(), "$lease_until")},
		{Key: "holder", Value: choose(free, bson.D{{Key: "$literal", Value: mine.holder}}, "$holder")},
	}, false)
	return r, r != nil && r.Holder == mine.holder, err
}

// renew keeps the lease; false: it is no longer ours.
func (o *Options) renew(ctx context.Context, client *mongo.Client, mine lease) (bool, error) {
	r, err := o.update(ctx, client, mine.filter(), bson.D{{Key: "lease_until", Value: o.until()}}, false)
	return r != nil, err
}

// save stores a position and keeps the lease with the same write; false: it is no longer ours.
func (o *Options) save(ctx context.Context, client *mongo.Client, mine lease, p Place, more bson.D) (bool, error) {
	r, err := o.update(ctx, client, mine.filter(), append(append(p.move(), bson.E{Key: "lease_until", Value: o.until()}), more...), false)
	return r != nil, err
}

// release lets the next one in at once.
func (o *Options) release(ctx context.Context, client *mongo.Client, mine lease) error {
	_, err := o.update(ctx, client, mine.filter(), bson.D{{Key: "holder", Value: ""}, {Key: "lease_until", Value: "$$NOW"}}, false)
	return err
}
