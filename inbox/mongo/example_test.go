package mongo_test

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/inbox"
	"github.com/walrelay/walrelay/inbox/mongo"
	"github.com/walrelay/walrelay/stage"
	stagemongo "github.com/walrelay/walrelay/stage/mongo"
)

// A service that reacts to events with events: what it pays, what it says about
// it, and the mark that it has done so are one transaction.
func Example() {
	ctx := context.Background()
	client, err := driver.Connect(options.Client().ApplyURI("mongodb://localhost/?replicaSet=rs0"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = client.Disconnect(ctx) }()
	db := client.Database("payments")
	out, err := stagemongo.Open(ctx, db, stagemongo.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	// One clock for both: what is staged sorts after what was consumed.
	core, err := inbox.New(inbox.Options{Route: "payments", Clock: out.Clock()})
	if err != nil {
		fmt.Println(err)
		return
	}
	in, err := mongo.New(core, db, mongo.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}

	// ctx carries the transaction: what is written with it counts once.
	handler := func(ctx context.Context, m inbox.Message) error {
		ctx = stage.WithIdentity(ctx, stage.Identity(m.Identity))
		if _, err := db.Collection("payments").InsertOne(ctx, bson.D{{Key: "order", Value: string(m.Key)}}); err != nil {
			return err
		}
		b := out.Buffer()
		if _, err := b.Stage(ctx, stage.Event{Route: "payments", Type: "OrderPaid", Key: string(m.Key), Payload: map[string]string{"order": string(m.Key)}}); err != nil {
			return err
		}
		_, err := out.Flush(ctx, b)
		return err
	}
	handle := func(r *kgo.Record) error {
		outcome, err := in.Process(ctx, fromKafka(r), handler)
		if err != nil {
			return err // do not commit the offset of r, nor one after it
		}
		fmt.Println(outcome) // handled or duplicate: the offset may be committed
		return nil
	}
	if err := handle(&kgo.Record{Topic: "shop.orders", Key: []byte("order-1")}); err != nil {
		fmt.Println(err)
	}
}

// Marks are kept for a week; call it every few minutes.
func ExampleInbox_Forget() {
	ctx := context.Background()
	client, err := driver.Connect(options.Client().ApplyURI("mongodb://localhost/?replicaSet=rs0"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = client.Disconnect(ctx) }()
	core, err := inbox.New(inbox.Options{Route: "payments"})
	if err != nil {
		fmt.Println(err)
		return
	}
	in, err := mongo.New(core, client.Database("payments"), mongo.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	n, err := in.Forget(ctx, mongo.Retention{Keep: 7 * 24 * time.Hour})
	fmt.Println(n, err)
}
