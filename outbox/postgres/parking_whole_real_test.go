package postgres

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/pgserver"
)

func TestEventKeptWholeComesBackByteForByte(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		l := newLot(t, srv, event.Forze, forzeTable, nil)
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
				Relation: "outbox", EventID: fmt.Sprint("e", i, "\x00"), Route: "r\xff", Key: key, Topic: rec.Topic, Commit: event.AtLSN(event.LSN(i + 1)),
				Ordinal: 1<<32 - 1, Reason: "refused", Error: "bad \x00 byte \xff", Record: rec,
			}
			l.park(p)
			got, err := l.k.Show(l.ctx(), l.find(p.EventID))
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
				got.Error != "bad \\0 byte \uFFFD" || got.ParkedAt.IsZero() || got.Commit != p.Commit || got.Ordinal != p.Ordinal {
				t.Errorf("entry %d: %+v", i, got)
			}
			if (rec.Value == nil) != (l.ask(`select (value is null)::text from walrelay.parked order by id desc limit 1`) == "true") {
				t.Errorf("record %d: a tombstone and an empty value are the same", i)
			}
		}
	})
}

// Events without rows: order when released, and who waits for whom.
func TestWholeEventsComeBackInTheirOrderWhenNothingParkedHoldsThem(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		l := newLot(t, srv, event.Forze, forzeTable, nil)
		l.park(message(10, "a"), message(11, "b"))
		l.leave(message(14, "a"), message(12, "a"), message(13, "b"))
		l.leave(message(14, "a")) // as after a crash
		l.park(message(10, "a"))
		l.leave(message(10, "a")) // it is told to wait behind itself
		l.wantEntries("e10:a:parked:whole e11:b:parked:whole e14:a:behind:whole e12:a:behind:whole e13:b:behind:whole")
		l.wantHeld(outbox.HeldKey{Key: "a", Parked: true}, outbox.HeldKey{Key: "b", Parked: true})
		wantWhole := func(want string) []int64 {
			t.Helper()
			names, ids := l.whole()
			if names != want {
				t.Fatalf("may go: %s, want %s", names, want)
			}
			return ids
		}
		wantWhole("")
		l.retry(0, "e14") // it waits for another one
		l.retry(1, "e10")
		wantWhole("e10 e12 e14")
		l.wantHeld(outbox.HeldKey{Key: "a"}, outbox.HeldKey{Key: "b", Parked: true})
		ids := wantWhole("e10 e12 e14")
		if err := l.k.Done(l.ctx(), ids[:1]); err != nil {
			t.Fatal(err)
		}
		l.park(message(12, "a")) // the next one is refused: it was behind, now it is parked itself
		l.wantEntries("e11:b:parked:whole e14:a:behind:whole e12:a:parked:whole e13:b:behind:whole")
		wantWhole("")
		l.drop(1, "e12")
		l.drop(1, "e11")
		ids = wantWhole("e13 e14")
		if err := l.k.Done(l.ctx(), ids); err != nil {
			t.Fatal(err)
		}
		l.wantHeld()

		// A row that is on its way goes before what was left behind it whole.
		l.insert(1, 1, 1)
		l.park(parked(1, "c"))
		l.leave(message(20, "c"))
		l.retry(1, "e1")
		wantWhole("")
		l.mark(outbox.Mark{ID: id(1)})
		l.wantHeld(outbox.HeldKey{Key: "c", Behind: true})
		wantWhole("e20")
		// And what holds nothing back waits for nothing.
		loose := message(30, "")
		l.park(loose)
		l.retry(1, "e30")
		wantWhole("e20 e30")
		l.wantHeld(outbox.HeldKey{Key: "c", Behind: true})
	})
}

func TestRowBehindAnEventThatIsKeptWholeIsKeptWholeToo(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		l := newLot(t, srv, event.Forze, forzeTable, nil)
		l.insert(1, 5, 1)
		l.park(parked(1, "c"))
		l.leave(parked(2, "c")) // before: it stays as it is
		l.leave(message(20, "c"))
		l.leave(parked(3, "c"))
		l.leave(parked(4, "d")) // another key
		l.exec(`update public.outbox set status = 'processing', processing_at = now() where hlc = 5`)
		l.leave(parked(5, "c")) // somebody's already
		l.wantRow(2, "pending attempts=0")
		l.wantRow(3, "published attempts=0 published_at")
		l.wantRow(4, "pending attempts=0")
		l.wantRow(5, "processing attempts=0 processing_at")
		l.wantEntries("e1:c:parked:row e20:c:behind:whole e3:c:behind:whole")
	})
}

// What a log that is read again may bring again: not a row that the reader of the table
// parked, nor one that is its own event.
func TestKeptAreTheEventsOfTheLogThatHaveNoRow(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		l := newLot(t, srv, event.Forze, forzeTable, nil)
		l.insert(1, 1, 1)
		polled := message(2, "")
		polled.Commit = event.Position{}
		l.park(parked(1, "a"), polled, message(3, ""), message(4, "b"))
		l.leave(message(5, "b"))
		l.retry(1, "e4")
		var got []string
		list, err := l.k.Kept(l.ctx())
		for _, p := range list {
			got = append(got, fmt.Sprint(p.EventID, " ", p.Commit.LSN, " ", p.Ordinal, " ", p.Record == nil))
		}
		slices.Sort(got)
		if want := []string{"e3 0/3EB 3 true", "e4 0/3EC 4 true", "e5 0/3ED 5 true"}; err != nil || !slices.Equal(got, want) {
			t.Errorf("kept %q, want %q: %v", got, want, err)
		}
	})
}

func TestEventThatWasRefusedHalfMadeIsNotLetGo(t *testing.T) {
	t.Parallel()
	l := newLot(t, pgserver.Shared(t, pgserver.V15), event.Forze, forzeTable, nil)
	p := message(1, "k")
	p.Record.Partial = true
	l.park(p)
	l.retry(0, "e1")
	l.wantEntries("e1:k:parked:whole")
	l.drop(1, "e1")
}

func TestBudgetOfWholeEventsEndsInAHaltWithARemedy(t *testing.T) {
	t.Parallel()
	l := newLot(t, pgserver.Shared(t, pgserver.V15), event.Forze, forzeTable, func(o *Options) { o.ParkedBudget = 3 })
	l.insert(1, 1, 1)
	l.park(message(10, "a"))
	l.leave(message(11, "a"), message(12, "a"))
	for name, err := range map[string]error{
		"LeaveBehind": l.k.LeaveBehind(l.ctx(), message(13, "a")), "Park": l.k.Park(l.ctx(), message(14, "b")),
	} {
		var e *event.Error
		if !errors.As(err, &e) || e.Class != event.Halt || e.Fault != event.FaultPrecondition || e.Remedy == "" || e.Anchor != anchorParkingFull {
			t.Errorf("%s: %v", name, err)
		}
	}
	l.leave(message(12, "a")) // it is there
	l.park(parked(1, "c"))    // a row needs no room
	l.drop(1, "e10")
	l.leave(message(13, "a"))
}
