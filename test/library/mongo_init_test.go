package library

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/mongostream"
	stagemongo "github.com/walrelay/walrelay/stage/mongo"
	"github.com/walrelay/walrelay/test/mongoserver"
)

// The application's Init and the relay's make the same indexes by the same names:
// neither is refused for what the other made, and check misses nothing after both.
func TestApplicationAndRelayMakeTheSameCollectionInEitherOrder(t *testing.T) {
	t.Parallel()
	server := mongoserver.Shared(t)
	client := server.Client(t)
	schema, err := event.NewSchema(event.Forze, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, first := range []string{"application", "relay"} {
		db := client.Database(server.NewDatabase(t))
		o := mongostream.Options{
			Source: "orders", URL: server.URL(), Database: db.Name(), Collection: "outbox", Schema: schema, Holder: "test", WriteBack: mongostream.MarkRows,
		}.WithDefaults()
		application := func() { initialize(t, db) }
		relay := func() {
			if _, err := mongostream.Apply(t.Context(), client, o); err != nil {
				t.Errorf("%s first: %v", first, err)
			}
		}
		if first == "application" {
			application()
			relay()
		} else {
			relay()
			application()
		}
		for _, f := range mongostream.Check(t.Context(), o) {
			if f.Err != nil {
				t.Errorf("%s first: %s: %s", first, f.Setting, f.Is)
			}
		}
	}
	// What the application alone has made: the relay lacks only what is its own.
	db := client.Database(server.NewDatabase(t))
	initialize(t, db)
	specs, err := db.Collection("outbox").Indexes().ListSpecifications(t.Context())
	if err != nil || len(specs) != len(stagemongo.Indexes())+1 {
		t.Errorf("%d indexes, %v", len(specs), err)
	}
}

func initialize(t *testing.T, db *mongo.Database) {
	t.Helper()
	if err := stagemongo.Init(t.Context(), db, stagemongo.Options{}); err != nil {
		t.Fatal(err)
	}
}
