package mongostream

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"

	"github.com/walrelay/walrelay/event"
)

// Clock reads the server's clock against its log, again and again. It is for one goroutine.
type Clock struct {
	opt    Options
	client *mongo.Client
}

// NewClock prepares a clock; nothing is connected yet.
func NewClock(o Options) *Clock { return &Clock{opt: o.WithDefaults()} }

// Read takes a reading. The order of its commands is what it is worth:
//
//	clock  <  open transactions  <  end of the log
//
// A transaction that is not seen open began after the clock was read, or has its commit
// below the end of the log. A write outside of a transaction takes its place in the log
// when it is made, so that of those, too, none below the end is made later.
//
// Open transactions of all users are seen with the action inprog on the cluster. Without it
// nobody can tell how long a stamp may have been held back before its commit, and every
// event waits for the longest time that a transaction is allowed to take.
func (c *Clock) Read(ctx context.Context) (event.Reading, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opt.WireTimeout)
	defer cancel()
	r, err := c.read(ctx)
	if err != nil {
		c.Close(ctx)
		return event.Reading{}, Classify(err, "reading the server's clock")
	}
	return r, nil
}

func (c *Clock) read(ctx context.Context) (r event.Reading, err error) {
	if c.client == nil {
		if c.client, err = Connect(ctx, c.opt); err != nil {
			return r, err
		}
	}
	f, err := readHello(ctx, c.client)
	if err != nil {
		return r, err
	}
	r.NowMicros = f.Now.UnixMicro()
	oldest, err := oldestTransaction(ctx, c.client, f.Now)
	switch {
	case forbidden(err):
	case err != nil:
		return r, err
	default:
		r.OldestMicros = oldest.UnixMicro()
	}
	if f, err = readHello(ctx, c.client); err != nil {
		return r, err
	}
	r.At = AtTime(after(f.Applied))
	return r, nil
}

// Close ends the connection; the next reading makes another.
func (c *Clock) Close(ctx context.Context) {
	if c.client == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	_ = c.client.Disconnect(ctx)
	c.client = nil
}

// oldestTransaction is when the oldest transaction began, or the oldest write outside of one, that is
// still under way; now where there is none.
//
// The server lists the commands that run first and the sessions with an open transaction between two commands
// after them: one that goes on meanwhile is in neither list. So it is asked twice, and what either
// answer shows counts.
func oldestTransaction(ctx context.Context, client *mongo.Client, now time.Time) (time.Time, error) {
	for range 2 {
		began, err := scanTransactions(ctx, client, now)
		if err != nil {
			return now, err
		}
		now = began
	}
	return now, nil
}

func scanTransactions(ctx context.Context, client *mongo.Client, now time.Time) (time.Time, error) {
	admin := client.Database("admin", options.Database().SetReadConcern(readconcern.Local()))
	writes := bson.A{
		bson.D{{Key: "op", Value: bson.D{{Key: "$in", Value: bson.A{"insert", "update"}}}}},
		bson.D{{Key: "command.findAndModify", Value: bson.D{{Key: "$exists", Value: true}}}},
	}
	cur, err := admin.Aggregate(ctx, bson.A{
		bson.D{{Key: "$currentOp", Value: bson.D{{Key: "allUsers", Value: true}, {Key: "idleSessions", Value: true}, {Key: "idleConnections", Value: false}}}},
		bson.D{{Key: "$match", Value: bson.D{{Key: "$or", Value: bson.A{
			bson.D{{Key: "transaction.parameters.autocommit", Value: false}},
			bson.D{{Key: "active", Value: true}, {Key: "$or", Value: writes}},
		}}}}},
		bson.D{{Key: "$project", Value: bson.D{
			{Key: "began", Value: "$transaction.startWallClockTime"},
			{Key: "at", Value: "$currentOpTime"},
			{Key: "running", Value: "$microsecs_running"},
		}}},
	})
	if err != nil {
		return now, err
	}
	var open []struct {
		Began   string `bson:"began"`
		At      string `bson:"at"`
		Running int64  `bson:"running"`
	}
	if err := cur.All(ctx, &open); err != nil {
		return now, err
	}
	for _, t := range open {
		// As in 2026-12-01T05:20:00.123+00:00.
		began, err := time.Parse(time.RFC3339Nano, t.Began)
		if err != nil {
			if began, err = time.Parse(time.RFC3339Nano, t.At); err != nil {
				continue
			}
			began = began.Add(-time.Duration(t.Running) * time.Microsecond)
		}
		if began.Before(now) {
			now = began
		}
	}
	return now, nil
}
