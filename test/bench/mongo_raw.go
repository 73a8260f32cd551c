package main

import (
	"context"
	"fmt"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// mongoRawURL is the variable that makes this program read a change stream with
// the driver alone: the least that a client in Go can do.
const mongoRawURL = "BENCH_MONGO_RAW_URL"

// drainChanges reads args: database, collection, number of events, seconds and
// increment of the time to begin at.
func drainChanges(url string, args []string) error {
	want, err1 := strconv.Atoi(args[2])
	seconds, err2 := strconv.ParseUint(args[3], 10, 32)
	increment, err3 := strconv.ParseUint(args[4], 10, 32)
	if err1 != nil || err2 != nil || err3 != nil {
		return fmt.Errorf("%q: want names and three numbers", args)
	}
	client, err := mongo.Connect(options.Client().ApplyURI(url))
	if err != nil {
		return err
	}
	ctx := context.Background()
	defer func() { _ = client.Disconnect(ctx) }()
	stream, err := client.Database(args[0]).Collection(args[1]).Watch(ctx, mongo.Pipeline{}, options.ChangeStream().
		SetStartAtOperationTime(&bson.Timestamp{T: uint32(seconds), I: uint32(increment)}).SetBatchSize(mongoBatch))
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close(ctx) }()
	for seen := range want {
		if !stream.Next(ctx) {
			return fmt.Errorf("%d events came, want %d: %w", seen, want, stream.Err())
		}
	}
	return nil
}
