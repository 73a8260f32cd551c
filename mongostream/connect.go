package mongostream

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// Connect makes a client and waits until the primary answers. One client serves stream,
// claims and marks of a source: it has no time limit of its own, so every call but the
// iteration of the stream needs a context that has one. The caller owes Disconnect.
// Errors are classified.
func Connect(ctx context.Context, o Options) (*mongo.Client, error) {
	o = o.WithDefaults()
	co, err := o.ClientOptions()
	if err != nil {
		return nil, err
	}
	client, err := mongo.Connect(co) // it does not connect yet
	if err != nil {
		return nil, usage("the URL cannot be used: "+withoutURL(err), remedyURL)
	}
	ctx, cancel := context.WithTimeout(ctx, o.WireTimeout)
	defer cancel()
	if err := client.Database("admin").RunCommand(ctx, bson.D{{Key: "ping", Value: 1}}).Err(); err != nil {
		_ = client.Disconnect(context.WithoutCancel(ctx))
		return nil, Classify(err, "connecting")
	}
	return client, nil
}
