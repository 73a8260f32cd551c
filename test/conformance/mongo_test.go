package conformance

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	driveroptions "go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/mongostream"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/outbox/mongo"
	"github.com/walrelay/walrelay/test/mongoserver"
)

// mongoYard is a database of the test's own on the shared replica set, as "walrelay init" makes it.
type mongoYard struct {
	srv    *mongoserver.Server
	name   string
	db     *driver.Database
	c      *driver.Collection
	schema event.Schema
}

func newMongo(t *testing.T) *mongoYard {
	t.Helper()
	srv := mongoserver.Shared(t)
	b := &mongoYard{srv: srv, name: srv.NewDatabase(t), schema: forze(t)}
	client := srv.Client(t)
	if _, err := mongostream.Apply(t.Context(), client, mongostream.Options{
		Source: "orders", URL: srv.URL(), Database: b.name, Collection: "outbox", Schema: b.schema, Holder: "conformance",
		Capture: mongostream.CapturePoll, WriteBack: mongostream.MarkRows, Retains: true,
	}); err != nil {
		t.Fatal(err)
	}
	b.db = client.Database(b.name)
	b.c = b.db.Collection("outbox")
	return b
}

func (b *mongoYard) open(t *testing.T, o options) (outbox.Table, outbox.Leases, parking) {
	t.Helper()
	mo := mongo.Options{
		Source: "orders", Owner: o.owner, Database: b.name, Collection: "outbox", Schema: b.schema, ParkedBudget: o.budget,
		AfterPublish: mongo.AfterPublish(o.after),
		Client: func(context.Context) (*driver.Client, error) {
			return driver.Connect(driveroptions.Client().ApplyURI(b.srv.URL()))
		},
		Classify: mongostream.Classify,
	}
	if o.lease {
		mo.Claim = mongo.ClaimLease
	}
	if o.last {
		mo.MissingHLC = mongo.HLCLast
	}
	if o.owner == "" {
		mo.Owner = "shop/orders"
	}
	db := mongo.New(mo)
	t.Cleanup(func() { _ = db.Close(context.Background()) })
	tables, err := db.Tables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return tables[0], db.Leases(), db.Parking()
}

func (b *mongoYard) relation() string            { return b.name + ".outbox" }
func (b *mongoYard) id(n int) string             { return b.oid(n).Hex() }
func (b *mongoYard) at(n int) event.Position     { return event.AtToken(fmt.Sprintf("82%08X00000001", n)) }
func (b *mongoYard) missingFirst(o options) bool { return !o.last }

func (b *mongoYard) oid(n int) (id bson.ObjectID) {
	copy(id[:], fmt.Sprintf("%012d", n))
	return id
}

func (b *mongoYard) oids(rows []int) []bson.ObjectID {
	list := make([]bson.ObjectID, len(rows))
	for i, n := range rows {
		list[i] = b.oid(n)
	}
	return list
}

func (b *mongoYard) insert(t *testing.T, from, to, keys int) {
	t.Helper()
	var docs []any
	for n := from; n <= to; n++ {
		docs = append(docs, bson.D{
			{Key: "_id", Value: b.oid(n)},
			{Key: "id", Value: fmt.Sprintf("00000000-0000-0000-0000-%012d", n)},
			{Key: "event_id", Value: eventID(n)},
			{Key: "outbox_route", Value: fmt.Sprint("route", n%3)},
			{Key: "event_type", Value: "made"},
			{Key: "occurred_at", Value: made(n)},
			{Key: "payload", Value: bson.D{{Key: "a", Value: 1}}},
			{Key: "status", Value: "pending"},
			{Key: "attempts", Value: 0},
			{Key: "ordering_key", Value: fmt.Sprint("k", n%keys)},
			{Key: "hlc", Value: int64(n)},
			{Key: "created_at", Value: made(n)},
			{Key: "available_at", Value: nil},
			{Key: "published_at", Value: nil},
			{Key: "processing_at", Value: nil},
			{Key: "last_error", Value: nil},
		})
	}
	if _, err := b.c.InsertMany(t.Context(), docs); err != nil {
		t.Fatal(err)
	}
}

func (b *mongoYard) set(t *testing.T, rows []int, fields map[string]any) {
	t.Helper()
	sets := bson.M{}
	for name, value := range fields {
		switch v := value.(type) {
		case moment:
			sets[name] = bson.M{"$add": bson.A{"$$NOW", time.Duration(v).Milliseconds()}}
		default:
			sets[name] = bson.M{"$literal": v}
		}
	}
	update := bson.A{bson.M{"$set": sets}}
	if hlc, given := fields["hlc"]; given && hlc == nil {
		update = append(update, bson.M{"$unset": "hlc"}) // as writers without stamps leave it
	}
	if _, err := b.c.UpdateMany(t.Context(), bson.M{"_id": bson.M{"$in": b.oids(rows)}}, update); err != nil {
		t.Fatal(err)
	}
}

func (b *mongoYard) remove(t *testing.T, rows ...int) {
	t.Helper()
	if _, err := b.c.DeleteMany(t.Context(), bson.M{"_id": bson.M{"$in": b.oids(rows)}}); err != nil {
		t.Fatal(err)
	}
}

func (b *mongoYard) read(t *testing.T, n int) map[string]any {
	t.Helper()
	cursor, err := b.c.Find(t.Context(), bson.M{"_id": b.oid(n)})
	if err != nil {
		t.Fatal(err)
	}
	var list []map[string]any
	if err := cursor.All(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 {
		return nil
	}
	for name, v := range list[0] {
		switch v := v.(type) {
		case bson.DateTime:
			list[0][name] = v.Time()
		case int32:
			list[0][name] = int64(v)
		}
	}
	return list[0]
}

func (b *mongoYard) rows(t *testing.T) (list []int) {
	t.Helper()
	cursor, err := b.c.Find(t.Context(), bson.M{})
	if err != nil {
		t.Fatal(err)
	}
	for cursor.Next(t.Context()) {
		id := cursor.Current.Lookup("_id").ObjectID()
		n, err := strconv.Atoi(string(id[:]))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, n)
	}
	slices.Sort(list)
	return list
}

func (b *mongoYard) now(t *testing.T) time.Time {
	t.Helper()
	var hello struct {
		LocalTime time.Time `bson:"localTime"`
	}
	if err := b.db.RunCommand(t.Context(), bson.D{{Key: "hello", Value: 1}}).Decode(&hello); err != nil {
		t.Fatal(err)
	}
	return hello.LocalTime
}

func (b *mongoYard) age(t *testing.T, holder string, d time.Duration) {
	t.Helper()
	older := func(list string, fields ...string) bson.M {
		change := bson.M{}
		for _, f := range fields {
			change[f] = bson.M{"$subtract": bson.A{"$$x." + f, d.Milliseconds()}}
		}
		return bson.M{"$map": bson.M{"input": "$" + list, "as": "x", "in": bson.M{"$cond": bson.A{
			bson.M{"$eq": bson.A{"$$x.holder", holder}}, bson.M{"$mergeObjects": bson.A{"$$x", change}}, "$$x",
		}}}}
	}
	if _, err := b.db.Collection("walrelay_leases").UpdateMany(t.Context(), bson.M{}, bson.A{bson.M{"$set": bson.M{
		"shards": older("shards", "from", "until"), "members": older("members", "until"),
	}}}); err != nil {
		t.Fatal(err)
	}
}
