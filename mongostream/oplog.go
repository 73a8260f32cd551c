package mongostream

import (
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
)

// oplog is what a member's oplog holds.
type oplog struct {
	Oldest, Newest bson.Timestamp
	// Size and Max are bytes; zero: not known.
	Size, Max int64
}

// window is the time between the oldest entry and the newest.
func (l *oplog) window() time.Duration { return between(l.Oldest, l.Newest) }

// between is the time from one cluster time to a later one; zero where it is not later.
func between(from, to bson.Timestamp) time.Duration {
	if to.T <= from.T {
		return 0
	}
	return time.Duration(to.T-from.T) * time.Second
}

// errHidden: nobody lets us see it.
var errHidden = errors.New("the right to read local.oplog.rs, or serverStatus, is missing")

// readOplog asks the primary, by whichever of two ways the user's rights leave open. A driver's
// error means that the server was not asked; errHidden that it may not be.
func readOplog(ctx context.Context, client *mongo.Client) (l oplog, err error) {
	log := client.Database("local").Collection("oplog.rs", options.Collection().SetReadConcern(readconcern.Local()))
	var entry struct {
		TS bson.Timestamp `bson:"ts"`
	}
	end := func(direction int) error {
		return log.FindOne(ctx, bson.D{}, options.FindOne().SetSort(bson.D{{Key: "$natural", Value: direction}}).SetProjection(bson.D{{Key: "ts", Value: 1}})).Decode(&entry)
	}
	if err = end(1); err == nil {
		l.Oldest = entry.TS
		if err = end(-1); err == nil {
			l.Newest = entry.TS
			l.measure(ctx, client)
			return l, nil
		}
	}
	var s mongo.ServerError
	if !errors.As(err, &s) && !errors.Is(err, mongo.ErrNoDocuments) {
		return l, Classify(err, "looking at the oplog")
	}
	var status struct {
		Oplog struct {
			Oldest bson.Timestamp `bson:"earliestOptime"`
			Newest bson.Timestamp `bson:"latestOptime"`
		} `bson:"oplog"`
	}
	// The section is left out unless it is asked for; the others are only in the way.
	err = client.Database("admin").RunCommand(ctx, bson.D{{Key: "serverStatus", Value: 1}, {Key: "oplog", Value: 1}, {Key: "metrics", Value: 0}, {Key: "wiredTiger", Value: 0}}).Decode(&status)
	switch {
	case err != nil && !errors.As(err, &s):
		return l, Classify(err, "looking at the oplog")
	case err != nil || status.Oplog.Oldest.IsZero():
		return l, errHidden
	}
	l.Oldest, l.Newest = status.Oplog.Oldest, status.Oplog.Newest
	return l, nil
}

// measure finds out how full the oplog is, where that may be asked.
func (l *oplog) measure(ctx context.Context, client *mongo.Client) {
	var stats struct {
		Size int64 `bson:"size"`
		Max  int64 `bson:"maxSize"`
	}
	if client.Database("local").RunCommand(ctx, bson.D{{Key: "collStats", Value: "oplog.rs"}}).Decode(&stats) == nil {
		l.Size, l.Max = stats.Size, stats.Max
	}
}

// young reports whether the oplog has not been cut yet, so that its window still grows.
func (l *oplog) young() bool { return l.Max > 0 && l.Size < l.Max/10*9 }
