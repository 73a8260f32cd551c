package conformance

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

func TestEventKeptWholeComesBackByteForByte(t *testing.T) {
	everywhere(t, options{}, func(t *testing.T, y *yard) {
		all := make([]byte, 256)
		for i := range all {
			all[i] = byte(i)
		}
		for i, rec := range []*event.Record{
			{Topic: "t", Key: all, Value: all, Headers: []event.Header{{Key: "a\x00b\xff", Value: all}, {Key: "", Value: nil}, {Key: "x", Value: []byte{}}}},
			{Topic: "t", Key: nil, Value: nil, Spread: true, Millis: -1, FallbackMillis: 1 << 50, Hash: 1<<31 - 1},
			{Topic: "no topic \x00\xfe", Key: []byte{}, Value: []byte{}, Loose: true},
			{Topic: `\x41`, Key: []byte("ключ"), Value: []byte(`{"a": "\u0000"}`), Partial: true},
			{Topic: "t", Key: []byte("big"), Value: make([]byte, 3<<20)},
		} {
			key := string(rec.Key)
			p := outbox.Parked{
				Relation: "outbox", EventID: fmt.Sprint("e", i, "\x00"), Route: "r\xff", Key: key, Topic: rec.Topic, Commit: y.at(i + 1),
				Ordinal: 1<<32 - 1, Reason: "refused", Error: "bad \x00 byte \xff", Record: rec,
			}
			began := y.now(t).Add(-time.Millisecond)
			y.park(p)
			got, err := y.k.Show(y.ctx(), y.find(p.EventID))
			if err != nil {
				t.Fatal(err)
			}
			rec.Origin = event.Origin{
				Source: "orders", Relation: "outbox", EventID: []byte(p.EventID), Route: []byte(p.Route), Commit: p.Commit, Ordinal: p.Ordinal,
			}
			if !reflect.DeepEqual(got.Record, rec) {
				t.Errorf("record %d: %.300s\nwant %.300s", i, fmt.Sprintf("%#v", got.Record), fmt.Sprintf("%#v", rec))
			}
			if got.Key != key || got.EventID != p.EventID || got.Route != p.Route || got.Topic != p.Topic || !got.Whole || got.Partial != rec.Partial ||
				got.Error != "bad \\0 byte \uFFFD" || got.ParkedAt.Before(began) || got.ParkedAt.After(y.now(t).Add(time.Millisecond)) ||
				got.Commit != p.Commit || got.Ordinal != p.Ordinal {
				t.Errorf("entry %d: %+v", i, got)
			}
		}
	})
}

// Events without rows: order when released, and who waits for whom.
func TestWholeEventsComeBackInTheirOrderWhenNothingParkedHoldsThem(t *testing.T) {
	everywhere(t, options{}, func(t *testing.T, y *yard) {
		y.park(y.message(10, "a"), y.message(11, "b"))
		y.leave(y.message(14, "a"), y.message(12, "a"), y.message(13, "b"))
		y.leave(y.message(14, "a")) // as after a crash
		y.park(y.message(10, "a"))
		y.leave(y.message(10, "a")) // it is told to wait behind itself
		y.wantEntries("e10:a:parked:whole e11:b:parked:whole e14:a:behind:whole e12:a:behind:whole e13:b:behind:whole")
		y.wantHeld(outbox.HeldKey{Key: "a", Parked: true}, outbox.HeldKey{Key: "b", Parked: true})
		y.wantWhole("")
		y.retry(0, "e14") // it waits for another one
		y.retry(1, "e10")
		y.wantWhole("e10 e12 e14")
		y.wantHeld(outbox.HeldKey{Key: "a"}, outbox.HeldKey{Key: "b", Parked: true})
		if list, err := y.k.Whole(y.ctx(), 2); err != nil || len(list) != 2 || list[0].EventID != "e10" {
			t.Fatalf("%d of two at most: %v", len(list), err)
		}
		ids := y.wantWhole("e10 e12 e14")
		if err := y.k.Done(y.ctx(), ids[:1]); err != nil {
			t.Fatal(err)
		}
		y.park(y.message(12, "a")) // the next one is refused: it was behind, now it is parked itself
		y.wantEntries("e11:b:parked:whole e14:a:behind:whole e12:a:parked:whole e13:b:behind:whole")
		y.wantWhole("")
		y.drop(1, "e12")
		y.drop(1, "e11")
		ids = y.wantWhole("e13 e14")
		if err := y.k.Done(y.ctx(), ids); err != nil {
			t.Fatal(err)
		}
		y.wantHeld()

		// A row that is on its way goes before what was left behind it whole.
		y.put(1, 1, 1)
		y.park(y.parked(1, "c"))
		y.leave(y.message(20, "c"))
		y.retry(1, "e1")
		y.wantWhole("")
		y.mark(outbox.Mark{ID: y.id(1)})
		y.wantHeld(outbox.HeldKey{Key: "c", Behind: true})
		y.wantWhole("e20")
		// And what holds nothing back waits for nothing.
		y.park(y.message(30, ""))
		y.retry(1, "e30")
		y.wantWhole("e20 e30")
		y.wantHeld(outbox.HeldKey{Key: "c", Behind: true})
	})
}

func TestRowThatIsGoneIsKeptWhole(t *testing.T) {
	everywhere(t, options{}, func(t *testing.T, y *yard) {
		y.put(1, 1, 1)
		y.park(y.parked(1, "c"))
		y.park(y.parked(7, "d"))         // inserted and deleted in one transaction
		y.leave(y.parked(8, "c"))        // likewise
		y.park(asRead(y.parked(9, "d"))) // claimed, and deleted by whoever it belonged to
		y.wantEntries("e1:c:parked:row e7:d:parked:whole e8:c:behind:whole")
		y.retry(1, "e7")
		y.wantWhole("e7")
		if p, err := y.k.Show(y.ctx(), y.find("e7")); err != nil || string(p.Record.Origin.Row) != y.id(7) {
			t.Fatalf("%+v, %v", p, err)
		}
	})
}

func TestRowBehindAnEventThatIsKeptWholeIsKeptWholeToo(t *testing.T) {
	everywhere(t, options{}, func(t *testing.T, y *yard) {
		y.put(1, 5, 1)
		y.park(y.parked(1, "c"))
		y.leave(y.parked(2, "c")) // before: it stays as it is
		y.leave(y.message(20, "c"))
		y.leave(y.parked(3, "c"))
		y.leave(y.parked(4, "d")) // another key
		y.change(fields{"status": "processing", "processing_at": moment(0)}, 5)
		y.leave(y.parked(5, "c")) // somebody's already
		y.wantRow(2, "pending attempts=0")
		y.wantRow(3, "published attempts=0 published_at")
		y.wantRow(4, "pending attempts=0")
		y.wantRow(5, "processing attempts=0 processing_at")
		y.wantEntries("e1:c:parked:row e20:c:behind:whole e3:c:behind:whole")
	})
}

// What a log that is read again may bring again: not a row that the reader of the table
// parked, nor one that is its own event.
func TestKeptAreTheEventsOfTheLogThatHaveNoRow(t *testing.T) {
	everywhere(t, options{}, func(t *testing.T, y *yard) {
		y.put(1, 1, 1)
		polled := y.message(2, "")
		polled.Commit = event.Position{}
		y.park(y.parked(1, "a"), polled, y.message(3, ""), y.message(4, "b"))
		y.leave(y.message(5, "b"))
		y.retry(1, "e4")
		list, err := y.k.Kept(y.ctx())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range list {
			if p.Record != nil || p.Commit != y.at(1000+int(p.Ordinal)) {
				t.Errorf("event %s: %+v", p.EventID, p)
			}
			got = append(got, p.EventID)
		}
		slices.Sort(got)
		if !slices.Equal(got, []string{"e3", "e4", "e5"}) {
			t.Errorf("kept %v", got)
		}
	})
}

func TestRowsAreNotWrittenToWhereNothingIsMarked(t *testing.T) {
	everywhere(t, options{after: "keep"}, func(t *testing.T, y *yard) {
		y.put(1, 2, 1)
		y.park(y.parked(1, "c"))
		y.leave(y.parked(2, "c"))
		y.wantRow(1, "pending attempts=0")
		y.wantRow(2, "pending attempts=0")
		y.wantEntries("e1:c:parked:whole e2:c:behind:whole")
		y.retry(1, "e1")
		y.wantWhole("e1 e2")
	})
}

func TestEventThatWasRefusedHalfMadeIsNotLetGo(t *testing.T) {
	everywhere(t, options{}, func(t *testing.T, y *yard) {
		p := y.message(1, "k")
		p.Record.Partial = true
		y.park(p)
		y.retry(0, "e1")
		y.wantEntries("e1:k:parked:whole")
		y.drop(1, "e1")
	})
}

func TestBudgetOfWholeEventsEndsInAHaltWithARemedy(t *testing.T) {
	everywhere(t, options{budget: 3}, func(t *testing.T, y *yard) {
		y.put(1, 1, 1)
		y.park(y.message(10, "a"))
		y.leave(y.message(11, "a"), y.message(12, "a"))
		for name, err := range map[string]error{
			"LeaveBehind": y.k.LeaveBehind(y.ctx(), y.message(13, "a")), "Park": y.k.Park(y.ctx(), y.message(14, "b")),
		} {
			var e *event.Error
			if !errors.As(err, &e) || e.Class != event.Halt || e.Fault != event.FaultPrecondition || e.Remedy == "" || e.Anchor != "parking-full" {
				t.Errorf("%s: %v", name, err)
			}
		}
		y.leave(y.message(12, "a")) // it is there
		y.park(y.parked(1, "c"))    // a row needs no room
		y.drop(1, "e10")
		y.leave(y.message(13, "a"))
	})
}
