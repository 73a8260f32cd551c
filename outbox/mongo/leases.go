package mongo

import (
	"context"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/outbox"
)

// Leases are one document per source, by the server's clock:
//
//	{_id: "shop/orders", at: <now>,
//	 shards:  [{of: 16, n: 3, holder: "a", from: …, until: …}],   part 3 of 16 is a's
//	 members: [{holder: "a", until: …}],                          a lives, and has a share
//	 taken:   [{n: 3, from: …, until: …}]}                        what the last renewal took from the dead
//
// A renewal is one update of that document, which the server makes whole or not at all and one
// after the other; it leaves its own answer in the document. A part is named with the number of
// parts, because those of another number are other parts: nothing is taken while somebody
// holds one of another cut.
type Leases struct {
	db    *Database
	owner string
}

var _ outbox.Leases = (*Leases)(nil)

// Leases of the source; they need bookkeeping.
func (d *Database) Leases() *Leases { return &Leases{db: d, owner: d.o.Owner} }

// leaseDocument is the document after an update.
type leaseDocument struct {
	At      time.Time     `bson:"at"`
	Shards  []leasedShard `bson:"shards"`
	Members []leaseMember `bson:"members"`
	Taken   []leasedShard `bson:"taken"`
}

type leasedShard struct {
	Of     int       `bson:"of"`
	N      int       `bson:"n"`
	Holder string    `bson:"holder"`
	From   time.Time `bson:"from"`
	Until  time.Time `bson:"until"`
}

type leaseMember struct {
	Holder string    `bson:"holder"`
	Until  time.Time `bson:"until"`
}

// Renew is one command.
func (l *Leases) Renew(ctx context.Context, holder string, ttl time.Duration, req outbox.LeaseRequest) (outbox.LeaseState, error) {
	doc, err := l.update(ctx, "renewing the leases of source "+l.db.o.Source, renewal(holder, ttl, req))
	if err != nil {
		return outbox.LeaseState{}, err
	}
	return doc.state(holder, req.Of), nil
}

// Release gives everything up at once.
func (l *Leases) Release(ctx context.Context, holder string) error {
	_, err := l.update(ctx, "releasing the leases of source "+l.db.o.Source, release(holder))
	return err
}

// update changes the document and reads it in the same step.
func (l *Leases) update(ctx context.Context, doing string, change driver.Pipeline) (doc leaseDocument, err error) {
	err = l.db.with(ctx, l.db.leasesCollection(), doing, func(ctx context.Context, c *driver.Collection) error {
		opt := options.FindOneAndUpdate().SetUpsert(true).SetReturnDocument(options.After)
		for {
			err := c.FindOneAndUpdate(ctx, bson.D{{Key: "_id", Value: l.owner}}, change, opt).Decode(&doc)
			// Of two who make the document at once, one is told that it is there.
			if !driver.IsDuplicateKeyError(err) || ctx.Err() != nil {
				return err
			}
		}
	})
	return doc, err
}

// state is what the document says to one of the members.
func (d *leaseDocument) state(me string, of int) outbox.LeaseState {
	var s outbox.LeaseState
	for _, m := range d.Members {
		s.Members++
		if m.Holder < me {
			s.Rank++
		}
	}
	for _, x := range d.Shards {
		switch {
		case !x.Until.After(d.At):
		case x.Holder == me && x.Of == of:
			s.Own = append(s.Own, x.N)
		case x.Holder != me && !slices.Contains(s.Others, x.Holder):
			s.Others = append(s.Others, x.Holder)
		}
	}
	for _, x := range d.Taken {
		s.Tenures = append(s.Tenures, outbox.Tenure{Shard: x.N, From: momentText(x.From), Until: momentText(x.Until)})
	}
	slices.Sort(s.Own)
	slices.Sort(s.Others)
	return s
}
