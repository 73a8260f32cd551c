package mongostream

import (
	"crypto/sha256"
	"encoding/hex"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// pipeline is what every stream asks the server for, besides its position. It is
// fixed for ever: a token stands for an event that the server must find again, and
// one that another pipeline leaves out is never found. So nothing of the
// configuration enters it; routes and tenants are told apart here.
//
// Beside inserts there are the events that end a stream: without them it would
// end in silence.
var pipeline = bson.A{
	bson.D{{Key: "$match", Value: bson.D{{Key: "operationType", Value: bson.D{{
		Key: "$in", Value: bson.A{opInsert, opDrop, opRename, opDropDatabase, opInvalidate},
	}}}}}},
	bson.D{{Key: "$project", Value: bson.D{
		{Key: "operationType", Value: 1},
		{Key: "clusterTime", Value: 1},
		{Key: "wallTime", Value: 1},
		{Key: "lsid", Value: 1},
		{Key: "txnNumber", Value: 1},
		{Key: "fullDocument", Value: 1},
		{Key: "to", Value: 1},
	}}},
}

const (
	opInsert       = "insert"
	opDrop         = "drop"
	opRename       = "rename"
	opDropDatabase = "dropDatabase"
	opInvalidate   = "invalidate"
)

// streamPipeline is the pipeline with a position in front: one of startAfter (a
// token) and startAtOperationTime, or neither for "now".
func streamPipeline(from start) bson.A {
	stage := bson.D{}
	switch {
	case len(from.token) > 0:
		stage = bson.D{{Key: "startAfter", Value: from.token}}
	case !from.time.IsZero():
		stage = bson.D{{Key: "startAtOperationTime", Value: from.time}}
	}
	return append(bson.A{bson.D{{Key: "$changeStream", Value: stage}}}, pipeline...)
}

// start says where a cursor begins.
type start struct {
	token bson.Raw
	time  bson.Timestamp
}

// fingerprint is the hash of what a token depends on: namespace and pipeline.
func (o *Options) fingerprint() string {
	doc, err := bson.Marshal(bson.D{
		{Key: "database", Value: o.Database}, {Key: "collection", Value: o.Collection}, {Key: "pipeline", Value: pipeline},
	})
	if err != nil {
		panic(err) // constants and two strings
	}
	sum := sha256.Sum256(doc)
	return hex.EncodeToString(sum[:8])
}
