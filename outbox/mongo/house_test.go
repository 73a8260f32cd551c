package mongo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/mongostream"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/mongoserver"
)

func TestMain(m *testing.M) { mongoserver.Main(m) }

// house is a database with one outbox collection, and a client to look at it.
type house struct {
	t    testing.TB
	srv  *mongoserver.Server
	name string
	db   *Database
	c    *driver.Collection
	*Table
}

// newHouse makes a database of its own with the indexes that init makes; change may alter the options.
func newHouse(t testing.TB, srv *mongoserver.Server, preset event.Preset, change func(o *Options)) *house {
	t.Helper()
	h := &house{t: t, srv: srv, name: srv.NewDatabase(t)}
	h.c = srv.Client(t).Database(h.name).Collection("outbox")
	for _, model := range indexes(preset) {
		if _, err := h.c.Indexes().CreateOne(h.ctx(), model); err != nil {
			t.Fatal(err)
		}
	}
	if preset == event.Debezium {
		if err := h.c.Database().CreateCollection(h.ctx(), "outbox"); err != nil {
			t.Fatal(err)
		}
	}
	h.Table, h.db = h.another(preset, change)
	return h
}

// indexes are those of init; for forze with those of the contract.
func indexes(preset event.Preset) []driver.IndexModel {
	index := func(state, keys string) driver.IndexModel {
		var by bson.D
		for key := range strings.FieldsSeq(keys) {
			by = append(by, is(key, 1))
		}
		o := options.Index().SetName(state + " " + keys)
		if state != "" {
			o.SetPartialFilterExpression(bson.D{is("status", state)})
		}
		return driver.IndexModel{Keys: by, Options: o}
	}
	switch preset {
	case event.Forze:
		return []driver.IndexModel{
			index("", "outbox_route event_id"), index("", "outbox_route status available_at created_at"),
			index("", "outbox_route status processing_at"), index("", "outbox_route status available_at hlc created_at id"),
			{Keys: bson.D{is(fieldClaimToken, 1)}, Options: options.Index().SetSparse(true)},
			index(pending, "status available_at hlc created_at id"), index(processing, "processing_at"),
			index(failed, "created_at"), index(published, "published_at _id"),
		}
	case event.Basic:
		return []driver.IndexModel{index("", "published_at created_at _id")}
	}
	return nil
}

// another opens the collection once more, as another process would.
func (h *house) another(preset event.Preset, change func(o *Options)) (*Table, *Database) {
	h.t.Helper()
	schema, err := event.NewSchema(preset, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	o := Options{
		Source: "orders", Owner: "shop/orders", Schema: schema, Database: h.name, Collection: "outbox",
		Client: func(context.Context) (*driver.Client, error) {
			// The worst that a URL can ask for: what the commands rely on they have to say themselves.
			return driver.Connect(options.Client().ApplyURI(h.srv.URL() + "&readPreference=secondaryPreferred&readConcernLevel=available&w=0"))
		},
		Classify: mongostream.Classify,
	}
	if change != nil {
		change(&o)
	}
	db := New(o)
	h.t.Cleanup(func() { _ = db.Close(context.Background()) })
	tables, err := db.Tables(h.ctx())
	if err != nil {
		h.t.Fatal(err)
	}
	return tables[0], db
}

func (h *house) ctx() context.Context { return context.Background() }

// oid is the n-th row's _id: in the order of n.
func oid(n int) bson.ObjectID {
	return bson.ObjectID{8: byte(n >> 24), 9: byte(n >> 16), 10: byte(n >> 8), 11: byte(n)}
}

// id is its text.
func id(n int) string { return oid(n).Hex() }

func ids(from, to int) (list []string) {
	for n := from; n <= to; n++ {
		list = append(list, id(n))
	}
	return list
}

// began is when the row 0 would have been made.
var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// forzeRow is a pending row: stamps ascend with n.
func forzeRow(n int, key string) bson.D {
	return bson.D{
		is("_id", oid(n)), is("id", fmt.Sprintf("00000000-0000-0000-0000-%012d", n)), is("event_id", fmt.Sprintf("00000000-0000-0000-0001-%012d", n)),
		is("outbox_route", fmt.Sprint("route", n%3)), is("event_type", "made"), is("ordering_key", key), is("occurred_at", began),
		is("payload", bson.D{is("a", int32(1))}), is("status", "pending"), is("created_at", began.Add(time.Duration(n)*time.Millisecond)),
		is("attempts", int32(0)), is("available_at", nil), is("published_at", nil), is("processing_at", nil), is("last_error", nil), is("hlc", int64(n)),
	}
}

// insert makes pending forze rows from..to, with keys k<n modulo keys>.
func (h *house) insert(from, to, keys int) {
	h.t.Helper()
	var rows []any
	for n := from; n <= to; n++ {
		rows = append(rows, forzeRow(n, fmt.Sprint("k", n%keys)))
	}
	h.add(rows...)
}

func (h *house) add(rows ...any) {
	h.t.Helper()
	if _, err := h.c.InsertMany(h.ctx(), rows); err != nil {
		h.t.Fatal(err)
	}
}

// set changes fields of rows; no numbers: of all.
func (h *house) set(fields bson.D, numbers ...int) {
	h.t.Helper()
	filter := bson.D{}
	if len(numbers) > 0 {
		var list bson.A
		for _, n := range numbers {
			list = append(list, oid(n))
		}
		filter = bson.D{in(fieldID, list)}
	}
	if _, err := h.c.UpdateMany(h.ctx(), filter, bson.D{is("$set", fields)}); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) doc(n int) bson.Raw {
	h.t.Helper()
	doc, err := h.c.FindOne(h.ctx(), bson.D{is(fieldID, oid(n))}).Raw()
	if err != nil {
		h.t.Fatal(err)
	}
	return doc
}

// row is the row's state, all that a transition may touch; times by their presence.
func (h *house) row(n int) string {
	doc := h.doc(n)
	words := []string{doc.Lookup("status").StringValue(), fmt.Sprint("attempts=", number(doc.Lookup("attempts")))}
	for _, name := range []string{"published_at", "processing_at"} {
		if _, ok := doc.Lookup(name).TimeOK(); ok {
			words = append(words, name)
		}
	}
	if at, ok := doc.Lookup("available_at").TimeOK(); ok {
		words = append(words, map[bool]string{true: "later", false: "due"}[at.After(time.Now())])
	}
	if s, ok := doc.Lookup("last_error").StringValueOK(); ok {
		words = append(words, "error="+s)
	}
	return strings.Join(words, " ")
}

func (h *house) wantRow(n int, want string) {
	h.t.Helper()
	if got := h.row(n); got != want {
		h.t.Fatalf("row %d is %q, want %q", n, got, want)
	}
}

func (h *house) claim(req outbox.Request) *outbox.Claim {
	h.t.Helper()
	c, err := h.Claim(h.ctx(), req)
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

func (h *house) settle(outcomes ...outbox.Outcome) []int {
	h.t.Helper()
	lost, err := h.Settle(h.ctx(), outcomes)
	if err != nil {
		h.t.Fatal(err)
	}
	return lost
}

func (h *house) mark(marks ...outbox.Mark) outbox.Marked {
	h.t.Helper()
	m, err := h.Mark(h.ctx(), marks)
	if err != nil {
		h.t.Fatal(err)
	}
	return m
}

func rowIDs(c *outbox.Claim) (list []string) {
	for i := range c.Rows {
		list = append(list, c.Rows[i].ID)
	}
	return list
}

// same compares lists.
func same(t testing.TB, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func contextOf(ctx context.Context, s *driver.Session) context.Context {
	return driver.NewSessionContext(ctx, s)
}
