package postgres

// Battery H of the outbox contract: what a checkpoint keeps, under rollback and under
// writers that come in between.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/hlc"
)

func stamp(ms, logical int64) hlc.Stamp {
	s, err := hlc.Pack(ms, logical)
	if err != nil {
		panic(err)
	}
	return s
}

// advance raises a node's mark in a transaction of its own.
func (h *house) advance(c Checkpoint, s hlc.Stamp) {
	h.t.Helper()
	w := h.begin()
	if err := c.Advance(context.Background(), w.db, s); err != nil {
		h.t.Fatal(err)
	}
	w.commit()
}

func (h *house) load(want hlc.Stamp, wantFound bool) {
	h.t.Helper()
	got, found, err := Checkpoint{}.Load(context.Background(), h.db())
	if err != nil || got != want || found != wantFound {
		h.t.Errorf("loaded %s %t %v, want %s %t", got, found, err, want, wantFound)
	}
}

// H1, H2, H3, H4.
func TestCheckpointKeepsTheGreatestMarkOfAllNodes(t *testing.T) {
	onEach(t, func(t *testing.T, h *house) {
		h.load(0, false) // H1
		one, two := Checkpoint{}, Checkpoint{NodeKey: "two"}
		h.advance(one, stamp(1_700_000_000_000, 3)) // H2: both components
		h.load(stamp(1_700_000_000_000, 3), true)
		top := stamp(1_700_000_000_001, 9)
		// H3, after each write; the last one is a low one.
		for _, s := range []hlc.Stamp{top, stamp(1_700_000_000_001, 8), stamp(1_700_000_000_000, 65535), 1, 0} {
			h.advance(one, s)
			h.wantsMark(top)
			h.load(top, true)
		}
		// H4: the other node's, lower and then higher.
		h.advance(two, top-1)
		h.load(top, true)
		h.advance(two, top+1)
		h.load(top+1, true)
		h.wants(fmt.Sprintf("default=%d two=%d", top, top+1), marks)
		h.advance(one, hlc.MaxClock)
		h.load(hlc.MaxClock, true)
	})
}

// H5, H6.
func TestCheckpointSharesTheFateOfTheTransaction(t *testing.T) {
	onEach(t, func(t *testing.T, h *house) {
		w := h.begin()
		if err := (Checkpoint{}).Advance(context.Background(), w.db, 5); err != nil {
			t.Fatal(err)
		}
		h.load(0, false)
		w.rollback()
		h.load(0, false)
		h.advance(Checkpoint{}, 7)
		w = h.begin()
		if err := (Checkpoint{}).Advance(context.Background(), w.db, 9); err != nil {
			t.Fatal(err)
		}
		h.load(7, true)
		w.rollback()
		h.load(7, true)
		h.advance(Checkpoint{}, 9)
		h.load(9, true)
	})
}

// H7. A gate in the table holds the writer of the low mark at its write; the high
// mark lands on another connection; then the low writer is let go. With a row there
// before and without: these are two paths of the server.
func TestLowWriterThatIsHeldAtItsWriteDoesNotLowerTheMark(t *testing.T) {
	onEach(t, func(t *testing.T, h *house) {
		const gate = 4711
		h.exec(fmt.Sprintf(`create function gate() returns trigger language plpgsql as $$ begin
			if new.hlc %% 2 = 1 then perform pg_advisory_xact_lock_shared(%d); end if; return new; end $$;
			create trigger gate before insert on hlc_checkpoint for each row execute function gate()`, gate))
		ctx := context.Background()
		for name, write := range map[string]func(w *work) error{
			"advance": func(w *work) error { return Checkpoint{}.Advance(ctx, w.db, 11) },
			"flush": func(w *work) error { // of a clock that stands at 0: its stamps are 1, or 3 after a mark of 2
				x, err := Open(ctx, h.db(), Options{Now: frozen(0)})
				if err == nil {
					_, err = x.Flush(ctx, w.db, h.stage(x.Buffer(), some(1)...))
				}
				return err
			},
		} {
			for _, before := range []hlc.Stamp{0, 2} {
				h.exec(`truncate hlc_checkpoint`)
				if before != 0 {
					h.advance(Checkpoint{}, before)
				}
				h.wantsMark(before)
				holder := h.pg.Conn(t, h.name)
				if _, err := holder.Exec(ctx, `select pg_advisory_lock($1)`, gate); err != nil {
					t.Fatal(err)
				}
				low := h.begin()
				done := make(chan error, 1)
				go func() { done <- write(low) }()
				h.blocked(1)
				h.wantsMark(before)
				h.advance(Checkpoint{}, 100) // even: passes the gate
				h.wantsMark(100)
				if _, err := holder.Exec(ctx, `select pg_advisory_unlock($1)`, gate); err != nil {
					t.Fatal(err)
				}
				if err := <-done; err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				h.wantsMark(100)
				low.commit()
				h.wantsMark(100)
				h.load(100, true)
			}
		}
	})
}

// H7 the other way round: a second writer is forced into the middle of a held write,
// between its statement and the end of its transaction.
func TestWriterThatComesIntoAHeldWriteKeepsTheGreaterMark(t *testing.T) {
	onEach(t, func(t *testing.T, h *house) {
		for name, c := range map[string]struct {
			held, second, want hlc.Stamp
			rollback           bool
		}{
			"low held, high comes":                     {held: 50, second: 100, want: 100},
			"high held, low comes":                     {held: 100, second: 50, want: 100},
			"high held and rolled back, low comes":     {held: 100, second: 50, want: 50, rollback: true},
			"high held and rolled back, lowest comes":  {held: 100, second: 5, want: 20, rollback: true},
			"low held and rolled back, the same comes": {held: 50, second: 50, want: 50, rollback: true},
		} {
			for _, before := range []hlc.Stamp{0, 20} {
				want := max(c.want, before)
				if c.want == 20 && before == 0 {
					want = c.second
				}
				h.exec(`truncate hlc_checkpoint`)
				if before != 0 {
					h.advance(Checkpoint{}, before)
				}
				h.wantsMark(before)
				held := h.begin()
				if err := (Checkpoint{}).Advance(context.Background(), held.db, c.held); err != nil {
					t.Fatal(err)
				}
				h.wantsMark(before)
				second := h.begin()
				done := make(chan error, 1)
				go func() { done <- Checkpoint{}.Advance(context.Background(), second.db, c.second) }()
				h.blocked(1)
				h.wantsMark(before)
				between := max(before, c.held)
				if c.rollback {
					held.rollback()
					between = before
				} else {
					held.commit()
				}
				if err := <-done; err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				h.wantsMark(between)
				second.commit()
				if got := h.ask(marks); got != "default="+packed(want) {
					t.Errorf("%s, %d before: %s, want %d", name, before, got, want)
				}
				h.load(want, true)
			}
		}
	})
}

func TestManyWritersLeaveTheGreatestMark(t *testing.T) {
	onEach(t, func(t *testing.T, h *house) {
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				for k := range 25 {
					w := h.begin()
					if err := (Checkpoint{}).Advance(context.Background(), w.db, hlc.Stamp(1+(k*37+i*11)%100)); err != nil {
						t.Error(err)
					}
					w.commit()
				}
			})
		}
		wg.Wait()
		top := hlc.Stamp(0)
		for i := range 4 {
			for k := range 25 {
				top = max(top, hlc.Stamp(1+(k*37+i*11)%100))
			}
		}
		h.load(top, true)
	})
}

// A mark that is no integer is an error of configuration, never "no mark"; so is a
// table that is not there, or is another.
func TestWhatIsNoMarkIsAnErrorWithARemedyAndNotTheAbsenceOfOne(t *testing.T) {
	onEach(t, func(t *testing.T, h *house) {
		table := func(column, value string) string {
			return `create table hlc_checkpoint (node_key text primary key, ` + column + `); insert into hlc_checkpoint values ('default'` + value + `)`
		}
		for want, ddl := range map[string]string{
			"does not exist":                     ``,
			"is of type text":                    table("hlc text", ", '7'"),
			"of hlc_checkpoint is of type text":  `create table hlc_checkpoint (node_key text primary key, hlc text)`, // empty, and yet wrong
			"is of type numeric":                 table("hlc numeric", ", 7.5"),
			"is of type integer":                 table("hlc int", ", 7"),
			"is of type double precision":        table("hlc float", ", 1e17"),
			"has another shape":                  table("hlc jsonb", ", '7'"),
			"has another shape than it ought to": table("mark bigint", ", 7"),
			"1 of 2 marks":                       table("hlc bigint", ", null), ('b', 5"),
			"mark -7 in":                         table("hlc bigint", ", -7), ('b', 5"),
			"is no stamp of a clock":             table("hlc bigint", fmt.Sprintf(", %d", uint64(hlc.MaxClock)+1)),
			"mark 9223372036854775807":           table("hlc bigint", ", 9223372036854775807"),
		} {
			want = strings.Replace(want, "of hlc_checkpoint is", `of "public"."hlc_checkpoint" is`, 1)
			h.exec(`drop table if exists hlc_checkpoint`)
			if ddl != "" {
				h.exec(ddl)
			}
			_, err := Open(context.Background(), h.db(), Options{})
			e, ok := errors.AsType[*event.Error](err)
			if !ok || e.Class != event.Halt || e.Fault != event.FaultPrecondition || !strings.Contains(e.Remedy, "bigint NOT NULL") || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", want, err)
			}
		}
		// The flush says it too, when the table was replaced since.
		h.exec(`drop table if exists hlc_checkpoint; ` + Checkpoint{}.DDL())
		h.load(0, false)
		x := h.open(Options{})
		h.exec(`alter table hlc_checkpoint drop constraint hlc_checkpoint_pkey`)
		w := h.begin()
		if _, err := x.Flush(context.Background(), w.db, h.stage(x.Buffer(), full())); sqlState(err) != "42P10" {
			t.Errorf("a checkpoint without a key: %v", err)
		}
	})
}

func TestServerThatCannotBeAskedIsNoMisfit(t *testing.T) {
	onEach(t, func(t *testing.T, h *house) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err := Open(ctx, h.db(), Options{})
		if _, halt := errors.AsType[*event.Error](err); err == nil || halt || !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want the cancellation as it is", err)
		}
	})
}

// Without stripes a node's transactions wait for each other from the flush on; with
// stripes sessions do not, and a second flush in one asks for no other row.
func TestStripesKeepSessionsFromWaitingForEachOther(t *testing.T) {
	onEach(t, func(t *testing.T, h *house) {
		striped := h.open(Options{Checkpoint: Checkpoint{Stripes: 1 << 20}}) // pids differ
		first := h.begin()
		var top hlc.Stamp
		for range 2 {
			res, err := striped.Flush(context.Background(), first.db, h.stage(striped.Buffer(), some(1)...))
			if err != nil {
				t.Fatal(err)
			}
			top = res.Mark
		}
		res := h.flush(striped, some(1)...) // does not wait for first
		h.load(res.Mark, true)
		first.commit()
		h.wants("2 1", `select count(*) || ' ' || count(*) filter (where hlc = $1::text::bigint) from hlc_checkpoint where node_key like 'default/%'`, packed(top))

		plain := h.open(Options{})
		first = h.begin()
		if _, err := plain.Flush(context.Background(), first.db, h.stage(plain.Buffer(), some(1)...)); err != nil {
			t.Fatal(err)
		}
		done := make(chan Result, 1)
		go func() { done <- h.flush(plain, some(1)...) }()
		h.blocked(1)
		first.commit()
		h.load((<-done).Mark, true)
	})
}
