package mongo_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	driverOptions "go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/stage/mongo"
	"github.com/walrelay/walrelay/test/mongoserver"
)

// The examples have no database to run on; their functions are run here.
func TestExamplesDoWhatTheySay(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := mongoserver.Shared(t)
	db := s.Client(t).Database(s.NewDatabase(t))
	if err := mongo.Init(ctx, db, mongo.Options{}); err != nil {
		t.Fatal(err)
	}
	out, err := mongo.Open(ctx, db, mongo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := placeOrder(ctx, db, out, "order-1"); err != nil {
		t.Fatal(err)
	}
	if placeOrder(ctx, db, out, "order-1") == nil {
		t.Error("an order was placed twice")
	}
	event := uuid.New()
	for run, want := range []int{0, 1} {
		if ignored, err := payOrder(ctx, db, out, "order-1", event); err != nil || ignored != want {
			t.Errorf("run %d: %d ignored, %v", run, ignored, err)
		}
	}
	cursor, err := db.Collection("outbox").Find(ctx, bson.D{}, driverOptions.Find().SetSort(bson.D{{Key: "hlc", Value: 1}}))
	if err != nil {
		t.Fatal(err)
	}
	var types []string
	for cursor.Next(ctx) {
		types = append(types, cursor.Current.Lookup("event_type").StringValue())
	}
	if got := strings.Join(types, " "); got != "OrderPlaced OrderPaid" || cursor.Err() != nil {
		t.Errorf("the outbox has %s, %v", got, cursor.Err())
	}
}
