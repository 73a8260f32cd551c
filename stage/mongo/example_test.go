package mongo_test

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/stage"
	"github.com/walrelay/walrelay/stage/mongo"
)

// placeOrder is a whole unit of work: the business change and what it has to say, in
// one transaction. WithTransaction runs it again where it conflicts with another one.
func placeOrder(ctx context.Context, db *driver.Database, out *mongo.Outbox, order string) error {
	return db.Client().UseSession(ctx, func(ctx context.Context) error {
		_, err := driver.SessionFromContext(ctx).WithTransaction(ctx, func(ctx context.Context) (any, error) {
			b := out.Buffer() // inside: another attempt begins with an empty one
			if _, err := db.Collection("orders").InsertOne(ctx, bson.D{{Key: "_id", Value: order}}); err != nil {
				return nil, err
			}
			if _, err := b.Stage(ctx, stage.Event{Route: "orders", Type: "OrderPlaced", Key: order, Payload: map[string]string{"id": order}}); err != nil {
				return nil, err
			}
			_, err := out.Flush(ctx, b) // last
			return nil, err
		})
		return err
	})
}

func ExampleOutbox_Flush() {
	ctx := context.Background()
	client, err := driver.Connect(options.Client().ApplyURI("mongodb://localhost/?replicaSet=rs0"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = client.Disconnect(ctx) }()
	db := client.Database("shop")
	// Once for the process, before anything is stamped.
	out, err := mongo.Open(ctx, db, mongo.Options{Checkpoint: mongo.Checkpoint{NodeKey: "shop-1"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := placeOrder(ctx, db, out, "order-1"); err != nil {
		fmt.Println(err)
	}
}

// payOrder takes the transaction's steps one by one. It gives the event an id of its
// own making: if the commit's answer is lost, this can be run again.
func payOrder(ctx context.Context, db *driver.Database, out *mongo.Outbox, order string, event uuid.UUID) (ignored int, err error) {
	session, err := db.Client().StartSession()
	if err != nil {
		return 0, err
	}
	defer session.EndSession(context.WithoutCancel(ctx)) // before a commit it aborts
	if err := session.StartTransaction(); err != nil {
		return 0, err
	}
	tx := driver.NewSessionContext(ctx, session)
	if _, err := db.Collection("orders").UpdateByID(tx, order, bson.D{{Key: "$set", Value: bson.D{{Key: "paid", Value: true}}}}); err != nil {
		return 0, err
	}
	b := out.Buffer()
	if _, err := b.Stage(ctx, stage.Event{ID: event, Route: "orders", Type: "OrderPaid", Key: order, Payload: map[string]string{"id": order}}); err != nil {
		return 0, err
	}
	res, err := out.Flush(tx, b)
	if err != nil {
		return 0, err
	}
	return len(res.Ignored), session.CommitTransaction(ctx)
}

// Stamps of one process are from one clock, whichever database they go to.
func ExampleOptions_clock() {
	ctx := context.Background()
	client, err := driver.Connect(options.Client().ApplyURI("mongodb://localhost/?replicaSet=rs0"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = client.Disconnect(ctx) }()
	shop, err := mongo.Open(ctx, client.Database("shop"), mongo.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	stock, err := mongo.Open(ctx, client.Database("stock"), mongo.Options{Clock: shop.Clock()})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(shop.Clock().Now() < stock.Clock().Now())
}

func ExampleInit() {
	ctx := context.Background()
	client, err := driver.Connect(options.Client().ApplyURI("mongodb://localhost/?replicaSet=rs0"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = client.Disconnect(ctx) }()
	if err := mongo.Init(ctx, client.Database("shop"), mongo.Options{}); err != nil {
		fmt.Println(err)
	}
}

func ExampleIndexes() {
	for _, index := range mongo.Indexes() {
		fmt.Println(index.Keys)
	}
	// Output:
	// {"outbox_route":{"$numberInt":"1"},"event_id":{"$numberInt":"1"}}
	// {"outbox_route":{"$numberInt":"1"},"status":{"$numberInt":"1"},"available_at":{"$numberInt":"1"},"created_at":{"$numberInt":"1"}}
	// {"outbox_route":{"$numberInt":"1"},"status":{"$numberInt":"1"},"processing_at":{"$numberInt":"1"}}
	// {"claim_token":{"$numberInt":"1"}}
	// {"outbox_route":{"$numberInt":"1"},"status":{"$numberInt":"1"},"available_at":{"$numberInt":"1"},"hlc":{"$numberInt":"1"},"created_at":{"$numberInt":"1"},"id":{"$numberInt":"1"}}
}
