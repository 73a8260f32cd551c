package mongostream

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// Facts is what the primary says of itself. It takes no right.
type Facts struct {
	// Set is the replica set's name; empty: a standalone server, a router, or a look-alike without one.
	Set string
	// Version is for people.
	Version string
	// Member is the address that the server has in its set.
	Member string
	// Router: the server is a mongos.
	Router bool
	// Writable: the server is the primary, or none is needed.
	Writable bool
	// Applied is the newest write, Majority the newest that a majority has: change streams go no further.
	Applied, Majority bson.Timestamp
	// Now is the server's clock when it answered, Offset how far it is ahead of ours (half a round trip unsure).
	Now    time.Time
	Offset time.Duration
}

// standalone: there is neither an oplog nor a transaction.
func (f *Facts) standalone() bool { return f.Set == "" && !f.Router }

type helloReply struct {
	Set       string    `bson:"setName"`
	Member    string    `bson:"me"`
	Msg       string    `bson:"msg"`
	Writable  bool      `bson:"isWritablePrimary"`
	LocalTime time.Time `bson:"localTime"`
	LastWrite struct {
		Applied struct {
			TS bson.Timestamp `bson:"ts"`
		} `bson:"opTime"`
		Majority struct {
			TS bson.Timestamp `bson:"ts"`
		} `bson:"majorityOpTime"`
	} `bson:"lastWrite"`
	// OperationTime is all that a mongos has.
	OperationTime bson.Timestamp `bson:"operationTime"`
}

func readHello(ctx context.Context, client *mongo.Client) (f Facts, err error) {
	var h helloReply
	sent := time.Now()
	if err := client.Database("admin").RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Decode(&h); err != nil {
		return f, Classify(err, "asking the server who it is")
	}
	now := time.Now()
	f = Facts{
		Set: h.Set, Member: h.Member, Router: h.Msg == "isdbgrid", Writable: h.Writable,
		Applied: h.LastWrite.Applied.TS, Majority: h.LastWrite.Majority.TS,
		Now: h.LocalTime, Offset: h.LocalTime.Sub(sent.Add(now.Sub(sent) / 2)),
	}
	if f.Router {
		f.Applied, f.Majority = h.OperationTime, h.OperationTime
	}
	return f, nil
}

// ReadFacts asks the primary who it is and how far its log is. Errors are classified.
func ReadFacts(ctx context.Context, client *mongo.Client) (Facts, error) {
	f, err := readHello(ctx, client)
	if err != nil {
		return f, err
	}
	var build struct {
		Version string `bson:"version"`
	}
	if err := client.Database("admin").RunCommand(ctx, bson.D{{Key: "buildInfo", Value: 1}}).Decode(&build); err != nil {
		return f, Classify(err, "asking the server for its version")
	}
	f.Version = build.Version
	return f, nil
}
