package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/walrelay/walrelay/mongostream/bsonjson"
)

// mongoLoopURL is the variable that makes this program the bare loop of claims
// and marks: the least that working off a collection costs. It publishes nothing (but
// see kafkaVariable).
const mongoLoopURL = "BENCH_MONGO_LOOP_URL"

// mongoLoop is one way to do it. claim takes documents in the order of the
// collection and answers them whole.
type mongoLoop struct {
	claim  func(context.Context, *mongo.Collection, int64) ([]bson.Raw, error)
	delete bool
}

var mongoLoops = map[string]mongoLoop{
	"mongo poll row":    {claim: claimDocuments},
	"mongo poll lease":  {claim: readDocuments},
	"mongo poll delete": {claim: readDocuments, delete: true},
}

// workOffCollection reads args: name of the loop, documents of a batch, number
// of documents, database.
func workOffCollection(url string, args []string) error {
	l := mongoLoops[args[0]]
	batch, err1 := strconv.Atoi(args[1])
	want, err2 := strconv.Atoi(args[2])
	if l.claim == nil || err1 != nil || err2 != nil {
		return fmt.Errorf("%q: want a loop and two numbers", args)
	}
	client, err := mongo.Connect(options.Client().ApplyURI(url).SetAppName(mongoLoopName))
	if err != nil {
		return err
	}
	ctx := context.Background()
	defer func() { _ = client.Disconnect(ctx) }()
	outbox := client.Database(args[3]).Collection("outbox",
		options.Collection().SetWriteConcern(&writeconcern.WriteConcern{W: "majority", Journal: new(true)}))
	kafka, err := newProducer()
	if err != nil {
		return err
	}
	for done := 0; done < want; {
		documents, err := l.claim(ctx, outbox, int64(batch))
		if err != nil {
			return err
		}
		if len(documents) == 0 {
			return fmt.Errorf("the collection is empty after %d documents, want %d", done, want)
		}
		if kafka != nil {
			if err := publishDocuments(ctx, kafka, documents); err != nil {
				return err
			}
		}
		if err := l.settle(ctx, outbox, documents); err != nil {
			return err
		}
		done += len(documents)
	}
	return nil
}

// pending finds documents in the order of the contract's index.
func pending(ctx context.Context, outbox *mongo.Collection, limit int64, more *options.FindOptionsBuilder) (documents []bson.Raw, err error) {
	cur, err := outbox.Find(ctx,
		bson.D{{Key: "outbox_route", Value: "orders"}, {Key: "status", Value: "pending"}, {Key: "available_at", Value: nil}},
		more.SetSort(bson.D{{Key: "hlc", Value: 1}, {Key: "created_at", Value: 1}, {Key: "id", Value: 1}}).SetLimit(limit).SetBatchSize(int32(limit)+1))
	if err != nil {
		return nil, err
	}
	err = cur.All(ctx, &documents)
	return documents, err
}

// readDocuments claims nothing.
func readDocuments(ctx context.Context, outbox *mongo.Collection, limit int64) ([]bson.Raw, error) {
	return pending(ctx, outbox, limit, options.Find())
}

// claimDocuments finds, writes a token, and reads what bears it.
func claimDocuments(ctx context.Context, outbox *mongo.Collection, limit int64) (documents []bson.Raw, err error) {
	heads, err := pending(ctx, outbox, limit, options.Find().SetProjection(bson.D{{Key: "_id", Value: 1}}))
	if err != nil {
		return nil, err
	}
	token := rand.Text()
	_, err = outbox.UpdateMany(ctx, bson.D{{Key: "_id", Value: among(heads)}, {Key: "status", Value: "pending"}}, mongo.Pipeline{set(
		bson.E{Key: "status", Value: "processing"}, bson.E{Key: "processing_at", Value: "$$NOW"}, bson.E{Key: "claim_token", Value: token})})
	if err != nil {
		return nil, err
	}
	cur, err := outbox.Find(ctx, bson.D{{Key: "claim_token", Value: token}}, options.Find().SetBatchSize(int32(limit)+1))
	if err != nil {
		return nil, err
	}
	err = cur.All(ctx, &documents)
	return documents, err
}

// settle marks or deletes what was claimed.
func (l mongoLoop) settle(ctx context.Context, outbox *mongo.Collection, documents []bson.Raw) error {
	filter := bson.D{{Key: "_id", Value: among(documents)}}
	if token, err := documents[0].LookupErr("claim_token"); err == nil {
		filter = append(filter, bson.E{Key: "claim_token", Value: token}, bson.E{Key: "status", Value: "processing"})
	} else {
		filter = append(filter, bson.E{Key: "status", Value: "pending"})
	}
	settled := int64(0)
	if l.delete {
		result, err := outbox.DeleteMany(ctx, filter)
		if err != nil {
			return err
		}
		settled = result.DeletedCount
	} else {
		result, err := outbox.UpdateMany(ctx, filter, mongo.Pipeline{set(
			bson.E{Key: "status", Value: "published"}, bson.E{Key: "published_at", Value: "$$NOW"}, bson.E{Key: "last_error", Value: nil})})
		if err != nil {
			return err
		}
		settled = result.ModifiedCount
	}
	if settled != int64(len(documents)) {
		return fmt.Errorf("%d documents were settled, want %d", settled, len(documents))
	}
	return nil
}

// publishDocuments publishes as a relay does that is written by hand, and waits
// until all of it is acknowledged.
func publishDocuments(ctx context.Context, kafka *producer, documents []bson.Raw) error {
	encoder := bsonjson.New(bsonjson.Options{})
	values := make([][]byte, atHLC+1)
	for _, d := range documents {
		payload, err := encoder.AppendDocument(nil, d.Lookup("payload").Value)
		if err != nil {
			return err
		}
		values[atPayload] = payload
		for at, field := range map[int]string{atEvent: "event_id", atKey: "ordering_key", atType: "event_type"} {
			values[at] = []byte(d.Lookup(field).StringValue())
		}
		values[atOccurred] = d.Lookup("occurred_at").Time().AppendFormat(nil, time.RFC3339Nano)
		values[atHLC] = strconv.AppendInt(nil, d.Lookup("hlc").Int64(), 10)
		kafka.publish(values)
	}
	return kafka.flush(ctx)
}

func among(documents []bson.Raw) bson.D {
	ids := make(bson.A, len(documents))
	for i, d := range documents {
		ids[i] = d.Lookup("_id")
	}
	return bson.D{{Key: "$in", Value: ids}}
}

func set(fields ...bson.E) bson.D { return bson.D{{Key: "$set", Value: bson.D(fields)}} }
