package postgres

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/slot"
	"github.com/walrelay/walrelay/test/pgserver"
)

// lot is a house with a parking store.
type lot struct {
	*house
	k *Parking
}

func newLot(t *testing.T, srv *pgserver.Server, preset event.Preset, ddl string, change func(o *Options)) *lot {
	t.Helper()
	h := newHouse(t, srv, preset, ddl, change)
	so := slot.Options{
		Source: "orders", DSN: srv.URL(h.name), Schema: h.db.o.Schema, Bookkeeping: "walrelay", Capture: slot.CapturePoll,
		WriteBack: slot.MarkRows, Tables: []slot.Table{{Schema: "public", Name: "outbox"}},
	}.WithDefaults()
	if _, err := slot.Apply(h.ctx(), h.conn, so); err != nil {
		t.Fatal(err)
	}
	return &lot{h, h.db.Parking()}
}

// parked is event n of a key, as the log would bring it.
func parked(n int, key string) outbox.Parked {
	return outbox.Parked{
		Relation: "public.outbox", Row: id(n), EventID: "e" + fmt.Sprint(n), Route: "r", Key: key, Topic: "shop.orders",
		Commit: event.AtLSN(event.LSN(1000 + n)), Ordinal: uint32(n), Reason: "too_large", Error: "it has 2 bytes, the limit is 1",
		Record: &event.Record{Topic: "shop.orders", Key: []byte(key), Value: fmt.Appendf(nil, `{"n": %d}`, n)},
	}
}

// message is the same without a row.
func message(n int, key string) outbox.Parked {
	p := parked(n, key)
	p.Relation, p.Row = "outbox", ""
	return p
}

func (l *lot) park(list ...outbox.Parked) {
	l.t.Helper()
	for _, p := range list {
		if err := l.k.Park(l.ctx(), p); err != nil {
			l.t.Fatal(err)
		}
	}
}

func (l *lot) leave(list ...outbox.Parked) {
	l.t.Helper()
	for _, p := range list {
		if err := l.k.LeaveBehind(l.ctx(), p); err != nil {
			l.t.Fatal(err)
		}
	}
}

// entries are the store's, in words: id state key row/whole.
func (l *lot) entries() string {
	l.t.Helper()
	list, err := l.k.List(l.ctx(), outbox.ParkedFilter{Limit: 1000})
	if err != nil {
		l.t.Fatal(err)
	}
	var words []string
	for _, p := range list {
		kind := "row"
		if p.Whole {
			kind = "whole"
		}
		words = append(words, fmt.Sprintf("%s:%s:%s:%s", p.EventID, p.Key, p.State, kind))
	}
	return strings.Join(words, " ")
}

func (l *lot) wantEntries(want string) {
	l.t.Helper()
	if got := l.entries(); got != want {
		l.t.Fatalf("entries: %s\nwant:    %s", got, want)
	}
}

func (l *lot) wantHeld(want ...outbox.HeldKey) {
	l.t.Helper()
	got, err := l.k.Held(l.ctx())
	if err != nil {
		l.t.Fatal(err)
	}
	if len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
		l.t.Fatalf("held %+v, want %+v", got, want)
	}
}

// whole are the event ids of Whole, and the ids of the entries.
func (l *lot) whole() (names string, ids []int64) {
	l.t.Helper()
	list, err := l.k.Whole(l.ctx(), 1000)
	if err != nil {
		l.t.Fatal(err)
	}
	var words []string
	for _, p := range list {
		words, ids = append(words, p.EventID), append(ids, p.ID)
	}
	return strings.Join(words, " "), ids
}

// find is the id of an event's entry.
func (l *lot) find(eventID string) int64 {
	l.t.Helper()
	list, err := l.k.List(l.ctx(), outbox.ParkedFilter{EventID: eventID})
	if err != nil || len(list) != 1 {
		l.t.Fatalf("entries of %s: %v, %v", eventID, list, err)
	}
	return list[0].ID
}

func (l *lot) retry(want int, events ...string) {
	l.t.Helper()
	l.operate("retried", l.k.Retry, want, events)
}

func (l *lot) drop(want int, events ...string) {
	l.t.Helper()
	l.operate("dropped", l.k.Drop, want, events)
}

func TestParkedRowFailsWithItsReasonAndComesBackWhenTold(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		l := newLot(t, srv, event.Forze, forzeTable, nil)
		l.insert(1, 6, 3)
		l.exec(`update public.outbox set status = 'processing', processing_at = now(), attempts = 3 where hlc = 2;
 update public.outbox set status = 'published', published_at = now() where hlc = 3;
 update public.outbox set available_at = now() where hlc = 1`)
		l.park(parked(1, "k1"), parked(2, "k2"), parked(3, "k0"))
		l.wantRow(1, "failed attempts=0 due error=it has 2 bytes, the limit is 1")
		l.wantRow(2, "failed attempts=3 processing_at error=it has 2 bytes, the limit is 1")
		l.wantRow(3, "published attempts=0 published_at") // delivered by somebody: there is nothing to put aside
		l.wantRow(4, "pending attempts=0")
		l.wantEntries("e1:k1:parked:row e2:k2:parked:row")
		l.park(parked(1, "k1")) // again, as after a crash
		again := parked(1, "k1")
		again.Commit, again.Ordinal, again.Record = event.Position{}, 0, nil // as the table reader does
		l.park(again)
		l.wantEntries("e1:k1:parked:row e2:k2:parked:row")
		l.wantHeld(outbox.HeldKey{Key: "k1", Parked: true}, outbox.HeldKey{Key: "k2", Parked: true})

		l.retry(1, "e2")
		l.wantRow(2, "pending attempts=0")
		l.wantRow(1, "failed attempts=0 due error=it has 2 bytes, the limit is 1")
		l.wantHeld(outbox.HeldKey{Key: "k1", Parked: true}, outbox.HeldKey{Key: "k2", Heads: []string{id(2)}})
		l.retry(0, "e2") // it is on its way
		l.retry(1, "e1")
		l.wantRow(1, "pending attempts=0")

		l.park(parked(2, "k2")) // it is refused once more
		l.wantEntries("e1:k1:retrying:row e2:k2:parked:row")
		l.wantRow(2, "failed attempts=0 error=it has 2 bytes, the limit is 1")

		l.mark(outbox.Mark{ID: id(1)}) // and this one arrives
		l.wantHeld(outbox.HeldKey{Key: "k2", Parked: true})
		l.wantEntries("e2:k2:parked:row")
		l.drop(1, "e2")
		l.wantRow(2, "failed attempts=0 error=it has 2 bytes, the limit is 1")
		l.wantHeld()
		l.wantEntries("")
	})
}

func TestDroppedEventDoesNotComeBackAlthoughItWasToldToGo(t *testing.T) {
	t.Parallel()
	l := newLot(t, pgserver.Shared(t, pgserver.V18), event.Forze, forzeTable, nil)
	l.insert(1, 2, 2)
	l.park(parked(1, "k1"), message(5, "m"))
	l.retry(2, "e1", "e5")
	l.drop(2, "e1", "e5")
	l.wantRow(1, "failed attempts=0 error=dropped by an operator")
	l.wantEntries("")
	if names, _ := l.whole(); names != "" {
		t.Errorf("%s still to be published", names)
	}
}

// What others do to the rows is seen.
func TestEntriesFollowTheirRows(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		l := newLot(t, srv, event.Forze, forzeTable, nil)
		l.insert(1, 5, 10)
		for n := 1; n <= 5; n++ {
			l.park(parked(n, fmt.Sprint("k", n)))
		}
		l.exec(`update public.outbox set status = 'pending', last_error = null where hlc = 1;
 update public.outbox set status = 'processing' where hlc = 2;
 update public.outbox set status = 'published' where hlc = 3;
 delete from public.outbox where hlc = 4`)
		l.wantHeld(outbox.HeldKey{Key: "k1", Heads: []string{id(1)}}, outbox.HeldKey{Key: "k2", Heads: []string{id(2)}},
			outbox.HeldKey{Key: "k5", Parked: true})
		l.wantEntries("e1:k1:retrying:row e2:k2:retrying:row e5:k5:parked:row")
		l.exec(`update public.outbox set status = 'failed', last_error = 'a poller of theirs' where hlc = 2`)
		l.wantHeld(outbox.HeldKey{Key: "k1", Heads: []string{id(1)}}, outbox.HeldKey{Key: "k2", Parked: true}, outbox.HeldKey{Key: "k5", Parked: true})
		if p, err := l.k.Show(l.ctx(), l.find("e2")); err != nil || p.Error != "a poller of theirs" || p.Record != nil || p.Whole {
			t.Errorf("%+v, %v", p, err)
		}
		// Another relay on the same database sees nothing of it.
		_, other := l.another(event.Forze, func(o *Options) { o.Owner = "shop/other" })
		if held, err := other.Parking().Held(l.ctx()); err != nil || len(held) != 0 {
			t.Errorf("held by another owner: %v, %v", held, err)
		}
		if n, err := other.Parking().Drop(l.ctx(), []int64{l.find("e2")}); err != nil || n != 0 {
			t.Errorf("another owner dropped %d, %v", n, err)
		}
	})
}

// The log tells of a commit before others can see its row: nothing is concluded from its absence.
func TestRowThatIsNotVisibleYetIsTriedAgain(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		l := newLot(t, srv, event.Forze, forzeTable, nil)
		writer := srv.Conn(t, l.name)
		tx, err := writer.Begin(l.ctx())
		if err != nil {
			t.Fatal(err)
		}
		var xid uint32
		if _, err := tx.Exec(l.ctx(), `insert into public.outbox (id, outbox_route) values ($1::uuid, 'r')`, id(1)); err != nil {
			t.Fatal(err)
		}
		if err := tx.QueryRow(l.ctx(), `select pg_current_xact_id()::text::int8 % (1::int8 << 32)`).Scan(&xid); err != nil {
			t.Fatal(err)
		}
		early, gone := parked(1, "k"), parked(2, "k")
		early.Xid, gone.Xid = xid, xid-1
		for name, f := range map[string]func(p outbox.Parked) error{
			"Park":        func(p outbox.Parked) error { return l.k.Park(l.ctx(), p) },
			"LeaveBehind": func(p outbox.Parked) error { return l.k.LeaveBehind(l.ctx(), p) },
		} {
			var e *event.Error
			if err := f(early); !errors.As(err, &e) || e.Class != event.Retry || !strings.Contains(e.What, "not visible") {
				t.Errorf("%s: %v", name, err)
			}
		}
		l.wantEntries("")
		if err := tx.Commit(l.ctx()); err != nil {
			t.Fatal(err)
		}
		l.leave(early)
		l.wantEntries("")
		l.park(early, gone) // the other one was inserted and deleted at once: it goes whole
		l.wantEntries("e1:k:parked:row e2:k:parked:whole")
		l.wantRow(1, "failed attempts=0 error=it has 2 bytes, the limit is 1")
	})
}

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

// Where rows have no failed state the event goes whole into the store, and its row is
// done with; rows that wait behind it stay for the table reader.
func TestRowsWithoutAFailedState(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		preset event.Preset
		ddl    string
		insert string
		after  AfterPublish
		left   string // row 1, which is parked
	}{
		"basic":       {event.Basic, basicTable, `insert into public.outbox (id, aggregate_type, aggregate_id) select ('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid, 'r', 'k' from generate_series(1, 3) n`, MarkIt, "published"},
		"basic, keep": {event.Basic, basicTable, `insert into public.outbox (id, aggregate_type, aggregate_id) select ('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid, 'r', 'k' from generate_series(1, 3) n`, Keep, "pending"},
		"debezium":    {event.Debezium, debeziumTable, `insert into public.outbox (id, aggregatetype, aggregateid) select ('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid, 'r', 'k' from generate_series(1, 3) n`, Delete, "NULL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLot(t, pgserver.Shared(t, pgserver.V18), c.preset, c.ddl, func(o *Options) { o.AfterPublish = c.after })
			l.exec(c.insert)
			state := func(n int) string {
				what := `'pending'`
				if c.preset == event.Basic {
					what = `case when published_at is null then 'pending' else 'published' end`
				}
				return l.ask(`select (select `+what+` from public.outbox where id = $1::uuid)`, id(n))
			}
			l.park(parked(1, "k"))
			l.leave(parked(2, "k"), parked(9, "k")) // the last row is not there
			claimed := parked(3, "k")               // by the table reader: it settles the row itself
			claimed.Commit = event.Position{}
			l.park(claimed)
			behind := ""
			if c.after == Keep {
				behind = " e2:k:behind:whole"
			}
			l.wantEntries("e1:k:parked:whole" + behind + " e9:k:behind:whole e3:k:parked:whole")
			for n, want := range []string{1: c.left, 2: "pending", 3: "pending"} {
				if n > 0 && state(n) != want {
					t.Errorf("row %d is %s, want %s", n, state(n), want)
				}
			}
			l.park(parked(1, "k"))
			l.retry(2, "e1", "e3")
			if names, _ := l.whole(); names != strings.TrimSpace("e3 e1"+strings.ReplaceAll(behind, ":k:behind:whole", "")+" e9") {
				t.Errorf("may go: %s", names)
			}
		})
	}
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

func TestMissingBookkeepingHaltsAndNamesInit(t *testing.T) {
	t.Parallel()
	l := newLot(t, pgserver.Shared(t, pgserver.V18), event.Forze, forzeTable, nil)
	l.insert(1, 1, 1)
	for _, undo := range []string{`drop table walrelay.parked`, `drop schema walrelay cascade`} {
		l.exec(undo)
		held, err := l.k.Held(l.ctx())
		for _, err := range []error{err, l.k.Park(l.ctx(), parked(1, "k")), l.k.LeaveBehind(l.ctx(), message(2, "k"))} {
			var e *event.Error
			if !errors.As(err, &e) || e.Class != event.Halt || e.Fault != event.FaultPrecondition || !strings.Contains(e.Remedy, "walrelay init") {
				t.Errorf("after %s: %v %v", undo, err, held)
			}
		}
		l.wantRow(1, "pending attempts=0") // both or neither
	}
}

// No setting of the session matters, and none is left behind.
func TestParkingWorksWhateverTheDatabasePrefers(t *testing.T) {
	t.Parallel()
	l := newLot(t, pgserver.Shared(t, pgserver.V18), event.Forze, forzeTable, nil)
	l.exec(fmt.Sprintf(`alter database %q set default_transaction_isolation = serializable`, l.name))
	l.exec(fmt.Sprintf(`alter database %q set bytea_output = escape; alter database %q set datestyle = 'German'; alter database %q set timezone = 'Asia/Kathmandu'`,
		l.name, l.name, l.name))
	_, db := l.another(event.Forze, nil)
	l.k = db.Parking()
	p := message(1, "k")
	p.Record.Value = []byte("\\x00\x00'\\")
	l.park(p)
	got, err := l.k.Show(l.ctx(), l.find("e1"))
	if err != nil || string(got.Record.Value) != string(p.Record.Value) || got.ParkedAt.UTC().Format("2006-01-02 15:04:05") != l.ask(`select to_char(parked_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS') from walrelay.parked`) {
		t.Errorf("%+v, %v", got, err)
	}
}

// operate runs an operator's command on the entries of some events.
func (l *lot) operate(what string, f func(ctx context.Context, ids []int64) (int, error), want int, events []string) {
	l.t.Helper()
	var ids []int64
	for _, e := range events {
		ids = append(ids, l.find(e))
	}
	if n, err := f(l.ctx(), ids); err != nil || n != want {
		l.t.Fatalf("%s %v: %d changed, want %d: %v", what, events, n, want, err)
	}
}
