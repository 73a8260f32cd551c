package postgres

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/pgserver"
)

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

// Where rows have no failed state the store takes the place of the row. One that is left
// pending, because it was not visible yet or somebody held its lock, is published beside the
// event in the store.
func TestRowIsNeverLeftPendingBesideItsEventInTheStore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		preset event.Preset
		ddl    string
		insert string
	}{
		"basic":    {event.Basic, basicTable, `insert into public.outbox (id, aggregate_type, aggregate_id) values ($1::uuid, 'r', 'k')`},
		"debezium": {event.Debezium, debeziumTable, `insert into public.outbox (id, aggregatetype, aggregateid) values ($1::uuid, 'r', 'k')`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := pgserver.Shared(t, pgserver.V18)
			l := newLot(t, srv, c.preset, c.ddl, func(o *Options) { o.AfterPublish = Delete })
			tx, err := srv.Conn(t, l.name).Begin(l.ctx())
			if err != nil {
				t.Fatal(err)
			}
			p := parked(1, "k")
			if _, err = tx.Exec(l.ctx(), c.insert, id(1)); err == nil {
				err = tx.QueryRow(l.ctx(), `select pg_current_xact_id()::text::int8 % (1::int8 << 32)`).Scan(&p.Xid)
			}
			if err != nil {
				t.Fatal(err)
			}
			var e *event.Error
			if err := l.k.Park(l.ctx(), p); !errors.As(err, &e) || e.Class != event.Retry || !strings.Contains(e.What, "not visible") {
				t.Errorf("before the row is visible: %v", err)
			}
			l.wantEntries("")
			if err := tx.Commit(l.ctx()); err != nil {
				t.Fatal(err)
			}

			if tx, err = srv.Conn(t, l.name).Begin(l.ctx()); err == nil {
				_, err = tx.Exec(l.ctx(), `select from public.outbox for update`)
			}
			if err != nil {
				t.Fatal(err)
			}
			result := make(chan error, 1)
			go func() { result <- l.k.Park(l.ctx(), p) }()
			for l.ask(`select count(*)::text from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`) == "0" && len(result) == 0 {
			}
			if err := tx.Rollback(l.ctx()); err != nil {
				t.Fatal(err)
			}
			if err := <-result; err != nil {
				t.Fatal(err)
			}
			l.wantEntries("e1:k:parked:whole")
			if n := l.ask(`select count(*)::text from public.outbox`); n != "0" {
				t.Errorf("%s rows are left beside the event in the store", n)
			}
		})
	}
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
