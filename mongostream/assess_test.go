package mongostream

import (
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/event"
)

func TestACursorIsNotLookedForBehindSeveralRouters(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]bool{
		"mongodb://a:1":                    true,
		"mongodb://a:1,b:2":                false,
		"mongodb://a:1/?loadBalanced=true": false,
	} {
		o := Options{Source: "orders", URL: url, Database: "shop", Collection: "outbox"}.WithDefaults()
		r := &Record{Database: "shop", Collection: "outbox"}
		err := judge(r, Facts{Router: true, Applied: bson.Timestamp{T: 1}}, &o)
		var e *event.Error
		if want != (err == nil) || err != nil && (!errors.As(err, &e) || e.Fault != event.FaultPrecondition || e.Remedy == "") {
			t.Errorf("%s: %v", url, err)
		}
		// The members of a replica set are one server to the driver.
		if err := judge(r, Facts{Set: "rs0", Applied: bson.Timestamp{T: 1}}, &o); err != nil {
			t.Errorf("%s, a replica set: %v", url, err)
		}
	}
}

// Whoever is late by a tick is not from the future: a fresh position lies one past the last write.
func TestAPositionIsOfTheFutureFromTwoTicksOn(t *testing.T) {
	t.Parallel()
	o := Options{Source: "orders", URL: "mongodb://a", Database: "shop", Collection: "outbox"}.WithDefaults()
	now := bson.Timestamp{T: 100, I: 4}
	for at, fine := range map[bson.Timestamp]bool{{T: 99, I: 9}: true, now: true, after(now): true, after(after(now)): false, {T: 101}: false} {
		r := &Record{Database: "shop", Collection: "outbox", Place: Place{ClusterTime: at}}
		if err := judge(r, Facts{Applied: now}, &o); (err == nil) != fine {
			t.Errorf("%v against %v: %v", at, now, err)
		}
	}
	if err := judge(&Record{Database: "shop", Collection: "outbox", Place: Place{ClusterTime: now}}, Facts{}, &o); err != nil {
		t.Errorf("a server that does not tell its last write: %v", err)
	}
}
