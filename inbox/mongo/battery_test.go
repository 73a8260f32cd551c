package mongo_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/hlc"
	"github.com/walrelay/walrelay/inbox"
	"github.com/walrelay/walrelay/inbox/mongo"
)

// The inbox battery (F) of the forze contract; F5 to F7 as far as no database is
// needed are in package inbox.
func TestSecondDeliveryIsSkippedAndMovesNoClock(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	wall := time.UnixMilli(1_700_000_000_000)
	clock := hlc.New(func() time.Time { return wall }, 0)
	in := h.inbox(inbox.Options{Clock: clock}, mongo.Options{})
	const stamp = "001700000001000.00003"
	got, err := in.Process(t.Context(), published(1, 10, "forze_hlc", stamp), func(ctx context.Context, m inbox.Message) error {
		if now := clock.Now(); now.String() <= stamp {
			t.Errorf("reaction at %s to an event at %s", now, stamp)
		}
		return h.pay(ctx, m)
	})
	is(t, "first", inbox.Handled, got, err)
	before := clock.Last()
	// The same place again, the same event at another place, and one that brings a later stamp.
	for _, r := range []inbox.Record{
		published(1, 10, "forze_hlc", stamp), published(1, 11, "forze_hlc", stamp), published(1, 12, "forze_hlc", "001700000002000.00000"),
	} {
		got, err := in.Process(t.Context(), r, h.pay)
		is(t, r.Place(), inbox.Duplicate, got, err)
	}
	if clock.Last() != before {
		t.Errorf("duplicates moved the clock from %s to %s", before, clock.Last())
	}
	h.holds(1, 1)
}

func TestRecordsWithoutIDsAreKnownByTheirPlace(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	in := h.inbox(inbox.Options{}, mongo.Options{})
	at := func(offset int64) inbox.Record {
		return inbox.Record{Topic: "orders", Partition: 1, Offset: offset, Key: []byte("order-1")}
	}
	for _, c := range []struct {
		r    inbox.Record
		want inbox.Outcome
	}{{at(1), inbox.Handled}, {at(2), inbox.Handled}, {at(1), inbox.Duplicate}} {
		got, err := in.Process(t.Context(), c.r, h.pay)
		is(t, c.r.Place(), c.want, got, err)
	}
	if _, err := in.Process(t.Context(), inbox.Record{Key: []byte("order-1")}, h.pay); !errors.Is(err, inbox.ErrNoID) {
		t.Errorf("a key alone: %v", err)
	}
	h.holds(2, 2)
}

// Two routes and two ids whose texts run together stay apart; marks look as the
// contract wants them (section 5), and one that forze wrote is known.
func TestRoutesAreReadersOfTheirOwn(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for _, route := range []string{"payments", "mails", "почта", "a|b", "$a"} {
		in := h.inbox(inbox.Options{Route: route}, mongo.Options{})
		got, err := in.Process(t.Context(), published(1, 1), h.pay)
		is(t, route, inbox.Handled, got, err)
		got, err = in.Process(t.Context(), published(1, 1), h.pay)
		is(t, route, inbox.Duplicate, got, err)
	}
	for id, route := range map[string]string{"8:payments|": "payments", "5:mails|": "mails", "5:почта|": "почта", "3:a|b|": "a|b", "2:$a|": "$a"} {
		var mark bson.Raw
		if err := h.db.Collection("inbox").FindOne(t.Context(), bson.D{{Key: "_id", Value: id + eventID(1)}}).Decode(&mark); err != nil {
			t.Errorf("%s: %v", route, err)
			continue
		}
		elements, _ := mark.Elements()
		age := time.Since(mark.Lookup("processed_at").Time()).Abs()
		if len(elements) != 5 || mark.Lookup("inbox_route").StringValue() != route || mark.Lookup("message_id").StringValue() != eventID(1) ||
			mark.Lookup("tenant_id").Type != bson.TypeNull || age > time.Minute {
			t.Errorf("mark %s", mark)
		}
	}
	theirs := bson.D{{Key: "_id", Value: "8:payments|" + eventID(2)}, {Key: "processed_at", Value: time.Now()}, {Key: "inbox_route", Value: "payments"}, {Key: "message_id", Value: eventID(2)}, {Key: "note", Value: "kept"}}
	if _, err := h.db.Collection("inbox").InsertOne(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	got, err := h.inbox(inbox.Options{}, mongo.Options{}).Process(t.Context(), published(2, 2), h.pay)
	is(t, "a mark of forze", inbox.Duplicate, got, err)
	if n := h.count("inbox", bson.D{{Key: "note", Value: "kept"}, {Key: "tenant_id", Value: bson.D{{Key: "$exists", Value: false}}}}); n != 1 {
		t.Error("the mark was changed")
	}
}

func TestEventsOfOtherPresetsAreKnownByTheirHeader(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	in := h.inbox(inbox.Options{EventIDHeader: inbox.HeaderID}, mongo.Options{})
	for offset, want := range []inbox.Outcome{inbox.Handled, inbox.Duplicate} {
		r := inbox.Record{Topic: "outbox.event.orders", Offset: int64(offset), Headers: []inbox.Header{{Key: "id", Value: []byte(eventID(1))}}}
		got, err := in.Process(t.Context(), r, h.pay)
		is(t, r.Place(), want, got, err)
	}
	h.holds(1, 1)
}

func TestUnusableIDIsAnErrorAndNoMark(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	in := h.inbox(inbox.Options{}, mongo.Options{})
	for _, id := range []string{"a\x00b", "\xff", string(make([]byte, 2000))} {
		r := inbox.Record{Topic: "orders", Headers: []inbox.Header{{Key: "forze_event_id", Value: []byte(id)}}}
		if _, err := in.Process(t.Context(), r, h.pay); !errors.Is(err, inbox.ErrBadID) {
			t.Errorf("id %.10q: %v", id, err)
		}
	}
	h.holds(0, 0)
}
