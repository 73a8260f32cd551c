package mongo_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/inbox"
	"github.com/walrelay/walrelay/inbox/mongo"
)

func TestForgetTakesOldMarksOfItsRouteInBoundedPieces(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	in := h.inbox(inbox.Options{}, mongo.Options{})
	// As in a collection that others made; marks then come in another order.
	if err := h.db.Collection("inbox").Indexes().DropAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	var marks []any
	now := time.Now()
	for n := range 100 {
		for _, route := range []string{"payments", "mails"} {
			marks = append(marks, bson.D{
				{Key: "_id", Value: fmt.Sprintf("%d:%s|m%d", len(route), route, n)},
				{Key: "inbox_route", Value: route},
				{Key: "message_id", Value: fmt.Sprint("m", n)},
				{Key: "processed_at", Value: now.Add(-time.Duration(n) * time.Hour)},
			})
		}
	}
	marks = append(marks, bson.D{{Key: "_id", Value: "no age"}, {Key: "inbox_route", Value: "payments"}})
	if _, err := h.db.Collection("inbox").InsertMany(t.Context(), marks); err != nil {
		t.Fatal(err)
	}
	keep := mongo.Retention{Keep: 49*time.Hour + 30*time.Minute, Batch: 20, Batches: 2}
	for i, want := range []int64{40, 10, 0} {
		if n, err := in.Forget(t.Context(), keep); n != want || err != nil {
			t.Errorf("call %d forgot %d, %v, want %d", i, n, err, want)
		}
		if i == 0 && h.count("inbox", bson.D{{Key: "inbox_route", Value: "payments"}, {Key: "message_id", Value: "m99"}}) != 0 {
			t.Error("the oldest are not the first to go")
		}
	}
	if n := h.count("inbox", bson.D{{Key: "inbox_route", Value: "payments"}}); n != 51 {
		t.Errorf("%d marks are left, want the 50 young ones and the one without an age", n)
	}
	if n := h.count("inbox", bson.D{{Key: "inbox_route", Value: "mails"}}); n != 100 {
		t.Errorf("%d marks of the other route are left, want 100", n)
	}
	for _, r := range []mongo.Retention{{}, {Keep: -1}, {Keep: time.Hour, Batch: -1}, {Keep: time.Hour, Batches: -1}} {
		if _, err := in.Forget(t.Context(), r); err == nil {
			t.Errorf("%+v is accepted", r)
		}
	}
}

// A call that reads the marks of many routes costs as much as the route's own.
func TestForgetReadsByItsIndex(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	var plan bson.Raw
	err := h.db.RunCommand(t.Context(), bson.D{{Key: "explain", Value: bson.D{
		{Key: "find", Value: "inbox"},
		{Key: "filter", Value: mongo.OldMarks("payments", time.Hour)},
		{Key: "sort", Value: bson.D{{Key: "processed_at", Value: 1}}},
		{Key: "limit", Value: 10},
	}}, {Key: "verbosity", Value: "queryPlanner"}}).Decode(&plan)
	if err != nil {
		t.Fatal(err)
	}
	winner := plan.Lookup("queryPlanner", "winningPlan").String()
	for _, want := range []string{"IXSCAN", "inbox_route_1_processed_at_1"} {
		if !strings.Contains(winner, want) {
			t.Errorf("plan without %s: %s", want, winner)
		}
	}
	for _, bad := range []string{`"SORT"`, "COLLSCAN"} {
		if strings.Contains(winner, bad) {
			t.Errorf("plan with %s: %s", bad, winner)
		}
	}
}

func TestCollectionMayHaveAnyName(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for range 2 { // may be repeated
		if err := mongo.Init(t.Context(), h.db, "Pay.in/box"); err != nil {
			t.Fatal(err)
		}
	}
	in := h.inbox(inbox.Options{}, mongo.Options{Collection: "Pay.in/box"})
	for _, want := range []inbox.Outcome{inbox.Handled, inbox.Duplicate} {
		got, err := in.Process(t.Context(), published(1, 1), h.pay)
		is(t, "a name", want, got, err)
	}
	if n := h.count("Pay.in/box", bson.D{}); n != 1 {
		t.Errorf("%d marks", n)
	}
	if _, err := in.Forget(t.Context(), mongo.Retention{Keep: time.Hour}); err != nil {
		t.Error(err)
	}
}
