package mongo

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"github.com/walrelay/walrelay/event"
)

// claimWithin is how long after the look a claim may begin to write, by the server's clock: one
// that lay in the socket of a server that was frozen comes too late.
const claimWithin = 10 * time.Second

// claimEnd is how long the end of a write is awaited whose answer was lost.
const claimEnd = 5 * time.Second

// isFree are the conditions of rows that a claim may take which has looked at that time.
func (l *layout) isFree(ids bson.A, looked time.Time) bson.D {
	d := append(bson.D{in(fieldID, ids)}, l.isPending()...)
	return append(d, is("$expr", op("$and", bson.A{l.isDue(), op("$lt", bson.A{"$$NOW", looked.Add(claimWithin)})})))
}

// take writes a claim, and does not return before it has ended: not when the answer is lost either.
func (t *Table) take(ctx context.Context, c *driver.Collection, guard bson.D, token string) (*driver.UpdateResult, error) {
	client := c.Database().Client()
	session, err := client.StartSession(options.Session().SetCausalConsistency(false))
	if err != nil {
		return nil, err
	}
	defer session.EndSession(context.WithoutCancel(ctx))
	taken, err := c.UpdateMany(driver.NewSessionContext(ctx, session), guard, bson.D{
		is("$set", bson.D{is(t.l.column(event.Status), processing), is(fieldClaimToken, token)}),
		is("$currentDate", bson.D{is(fieldProcessingAt, true)}),
	}, options.UpdateMany().SetHint(byID))
	if err != nil && (ctx.Err() != nil || driver.IsNetworkError(err) || driver.IsTimeout(err)) {
		awaitEnd(context.WithoutCancel(ctx), client, session.ID())
	}
	return taken, err
}

// awaitEnd waits until nothing of a session is under way in the server. Of its own commands every
// user may know. Where the server does not answer there is nothing to wait for: who looks for
// rows then has to wait for it as well.
func awaitEnd(ctx context.Context, client *driver.Client, session bson.Raw) {
	ctx, cancel := context.WithTimeout(ctx, claimEnd)
	defer cancel()
	admin := client.Database("admin", options.Database().SetReadPreference(readpref.Primary()).SetReadConcern(readconcern.Local()))
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		cursor, err := admin.Aggregate(ctx, bson.A{
			op("$currentOp", bson.D{is("allUsers", false)}), op("$match", bson.D{is("lsid.id", session.Lookup("id"))}), op("$limit", 1),
		})
		if err != nil {
			return
		}
		busy := false
		if err := each(ctx, cursor, func(bson.Raw) error { busy = true; return nil }); err != nil || !busy {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}
