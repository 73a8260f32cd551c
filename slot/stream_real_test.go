package slot_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/slot"
	"github.com/walrelay/walrelay/test/pgserver"
)

// outbox is a database with a small outbox, a publication and a slot.
type outbox struct {
	srv *pgserver.Server
	db  string
	opt slot.Options
}

func newOutbox(t *testing.T, srv *pgserver.Server) *outbox {
	t.Helper()
	schema, err := event.NewSchema(event.Basic, nil)
	if err != nil {
		t.Fatal(err)
	}
	o := &outbox{srv: srv, db: srv.NewDatabase(t)}
	o.exec(t, `create table outbox (seq bigserial, id uuid primary key default gen_random_uuid(), aggregate_type text, aggregate_id text,
		event_type text, payload jsonb, created_at timestamptz default now(), published_at timestamptz)`)
	name := "s_" + o.db
	if len(name) > 60 {
		name = name[:60]
	}
	o.exec(t, `create publication "`+name+`" for table outbox with (publish = 'insert')`)
	o.exec(t, `select pg_create_logical_replication_slot($1, 'pgoutput')`, name)
	t.Cleanup(func() { o.dropSlot(t, name) })
	o.opt = slot.Options{
		Source: "orders", DSN: srv.URL(o.db), Slot: name, Publication: name,
		Tables: []slot.Table{{Schema: "public", Name: "outbox"}}, Messages: []string{"outbox"}, Schema: schema,
		StatusInterval: time.Second, CheckInterval: time.Second,
	}
	return o
}

// dropSlot leaves room for the other tests that share the server.
func (o *outbox) dropSlot(t *testing.T, name string) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, o.srv.URL(o.db))
	if err != nil {
		return // the server is down: so is the slot
	}
	defer func() { _ = conn.Close(ctx) }()
	for range 50 {
		if _, err = conn.Exec(ctx, `select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = $1`, name); err == nil {
			return
		}
		_, _ = conn.Exec(ctx, `select pg_sleep(0.1)`)
	}
	t.Logf("slot %s stays: %v", name, err)
}

func (o *outbox) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	o.srv.ExecIn(t, o.db, sql, args...)
}

func (o *outbox) open(t *testing.T) *reading {
	t.Helper()
	r := &reading{t: t, states: make(chan event.State, 100)}
	s, err := slot.Open(o.opt, slot.Observer{
		State: func(st event.State, c event.Condition) {
			t.Logf("state %s %s", st, c.What)
			select {
			case r.states <- st:
			default:
			}
		},
		Reconnect: func(err error) { t.Logf("reconnect: %v", err) },
		Started:   func(at event.LSN, note string) { t.Logf("started at %s: %s", at, note) },
	})
	if err != nil {
		t.Fatal(err)
	}
	r.s = s
	t.Cleanup(func() { r.close() })
	return r
}

// confirmed is what the server remembers.
func (o *outbox) confirmed(t *testing.T) event.LSN {
	t.Helper()
	var text string
	if err := o.srv.Conn(t, o.db).QueryRow(t.Context(), `select confirmed_flush_lsn::text from pg_replication_slots where slot_name = $1`, o.opt.Slot).Scan(&text); err != nil {
		t.Fatal(err)
	}
	lsn, err := event.ParseLSN(text)
	if err != nil {
		t.Fatal(err)
	}
	return lsn
}

// reading reads a stream as the relay would.
type reading struct {
	t      *testing.T
	s      *slot.Stream
	once   sync.Once
	states chan event.State
	last   event.Position // confirmed
	end    event.Position // read, confirmed or not
	inTx   bool           // a transaction is half read
}

func (r *reading) close() {
	r.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := r.s.Close(ctx); err != nil {
			r.t.Errorf("closing: %v", err)
		}
	})
}

// keys reads until n events came, and returns their keys; confirm says whether
// what was complete is confirmed.
func (r *reading) keys(n int, confirm bool) []string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 30*time.Second)
	defer cancel()
	var keys []string
	for len(keys) < n {
		b, err := r.s.Next(ctx)
		if err != nil {
			r.t.Fatalf("after %d of %d events: %v", len(keys), n, err)
		}
		for _, ev := range b.Events {
			keys = append(keys, string(ev.Fields[event.Key]))
		}
		r.settle(b, confirm)
	}
	if !confirm {
		return keys
	}
	for r.inTx {
		b, err := r.s.Next(ctx)
		if err != nil {
			r.t.Fatal(err)
		}
		r.settle(b, true)
	}
	return keys
}

func (r *reading) settle(b *event.Batch, confirm bool) {
	for _, sp := range b.Spans {
		r.inTx = !sp.Done
		if sp.Done {
			r.end = sp.End
		}
		if sp.Done && confirm {
			r.last = sp.End
			r.s.Confirm(sp.End)
		}
	}
	b.Memory.Release()
}

func (r *reading) waitFor(want event.State) {
	r.t.Helper()
	timeout := time.After(30 * time.Second)
	for {
		select {
		case st := <-r.states:
			if st == want {
				return
			}
		case <-timeout:
			r.t.Fatalf("state %s was not reached", want)
		}
	}
}

func numbered(prefix string, n int) []string {
	var s []string
	for i := range n {
		s = append(s, fmt.Sprintf("%s%d", prefix, i))
	}
	return s
}

func (o *outbox) insert(t *testing.T, keys ...string) {
	t.Helper()
	o.exec(t, `insert into outbox (aggregate_type, aggregate_id, event_type, payload)
		select 'orders', k, 'Created', '{"n": 1}' from unnest($1::text[]) with ordinality as u(k, n) order by n`, keys)
}

func everyVersion(t *testing.T, f func(t *testing.T, srv *pgserver.Server)) {
	for _, v := range pgserver.Versions {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			f(t, pgserver.Shared(t, v))
		})
	}
}

func TestCleanCloseRepeatsNothing(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		o := newOutbox(t, srv)
		o.insert(t, numbered("a", 300)...)
		first := o.open(t)
		if got := first.keys(300, true); !slices.Equal(got, numbered("a", 300)) {
			t.Fatalf("read %d events out of order", len(got))
		}
		first.close()
		if got := o.confirmed(t); got != first.last.LSN {
			t.Fatalf("the server confirms %s after the close, want %s", got, first.last)
		}
		o.insert(t, "b")
		second := o.open(t)
		if got := second.keys(1, true); !slices.Equal(got, []string{"b"}) {
			t.Fatalf("read %q after the restart, want only b", got)
		}
	})
}

func TestUnconfirmedTransactionsComeAgain(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		o := newOutbox(t, srv)
		first := o.open(t)
		o.insert(t, "a", "b")
		first.keys(2, true)
		o.insert(t, "c", "d")
		first.keys(2, false)
		first.close()
		second := o.open(t)
		if got := second.keys(2, true); !slices.Equal(got, []string{"c", "d"}) {
			t.Fatalf("read %q, want c and d again", got)
		}
	})
}

func TestBrokenConnectionRepeatsNothingInOneProcess(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		o := newOutbox(t, srv)
		r := o.open(t)
		o.insert(t, "a")
		r.keys(1, false) // under way: neither acknowledged nor confirmed
		for r.inTx {
			b, err := r.s.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			r.settle(b, false)
		}
		underWay := r.end.LSN
		var want []string
		for i := range 5 {
			o.exec(t, `select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = $1`, o.opt.Slot)
			keys := numbered(fmt.Sprintf("r%d-", i), 2000)
			o.insert(t, keys...)
			want = append(want, keys...)
		}
		if got := r.keys(len(want), false); !slices.Equal(got, want) {
			t.Fatalf("%d events came, want exactly the %d that were written, in order", len(got), len(want))
		}
		r.close()
		if got := o.confirmed(t); got >= underWay {
			t.Fatalf("the server confirms %s although the event that ends at %s is under way", got, underWay)
		}
	})
}

func TestIdleStreamFollowsTheLogOfOthers(t *testing.T) {
	t.Parallel()
	srv := pgserver.Shared(t, pgserver.V18)
	o := newOutbox(t, srv)
	r := o.open(t)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	o.exec(t, `create table other (x text)`)
	o.exec(t, `insert into other select repeat('x', 1000) from generate_series(1, 20000)`)
	var head string
	if err := srv.Conn(t, o.db).QueryRow(ctx, `select pg_current_wal_insert_lsn()::text`).Scan(&head); err != nil {
		t.Fatal(err)
	}
	want, _ := event.ParseLSN(head)
	for o.confirmed(t)+1<<20 < want {
		b, err := r.s.Next(ctx)
		if err != nil {
			t.Fatalf("confirmed %s of %s: %v", o.confirmed(t), want, err)
		}
		if len(b.Events) > 0 {
			t.Fatal("an event came out of a foreign table")
		}
		r.settle(b, true)
	}
}

func TestServerStopsAtOnceBesideAnIdleStream(t *testing.T) {
	t.Parallel()
	for _, v := range []pgserver.Version{pgserver.V15, pgserver.V18} {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			srv := pgserver.Start(t, pgserver.Options{Version: v})
			o := newOutbox(t, srv)
			o.insert(t, "a")
			r := o.open(t)
			r.keys(1, true)
			go func() { // the relay's part: everything that comes is confirmed
				for {
					b, err := r.s.Next(context.Background())
					if err != nil {
						if !errors.Is(err, io.EOF) {
							t.Errorf("Next: %v", err)
						}
						return
					}
					r.settle(b, true)
				}
			}()
			if took := srv.Stop(t, pgserver.Fast); took > 2*time.Second {
				t.Fatalf("the server took %s to stop, want less than 2 s", took)
			}
			srv.StartAgain(t)
			r.waitFor(event.StateDisconnected)
			r.waitFor(event.StateStreaming)
			r.close()
		})
	}
}

func TestMain(m *testing.M) { pgserver.Main(m) }

// A transaction larger than all buffers together is cut twice in the middle.
func TestTransactionThatABrokenConnectionToreGoesOnWhereItWasCut(t *testing.T) {
	t.Parallel()
	const rows = 150_000
	for _, v := range []pgserver.Version{pgserver.V15, pgserver.V18} {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			o := newOutbox(t, pgserver.Shared(t, v))
			o.opt.InFlightBytes = 2 << 20
			r := o.open(t)
			o.insert(t, "before")
			r.keys(1, true)
			o.exec(t, `insert into outbox (aggregate_type, aggregate_id, event_type, payload)
				select 'orders', 'k' || n, 'Created', jsonb_build_object('pad', repeat('x', 300)) from generate_series(0, $1::int) n`, rows-1)
			var got []string
			for range 3 {
				got = append(got, r.keys(rows/4, false)...)
				o.exec(t, `select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = $1`, o.opt.Slot)
			}
			got = append(got, r.keys(rows-len(got), false)...)
			if len(got) != rows {
				t.Fatalf("%d events, want %d", len(got), rows)
			}
			for i, k := range got {
				if want := fmt.Sprintf("k%d", i); k != want {
					t.Fatalf("event %d is %s, want %s", i, k, want)
				}
			}
			o.insert(t, "after")
			if got := r.keys(1, true); !slices.Equal(got, []string{"after"}) {
				t.Fatalf("read %q behind the torn transaction, want after", got)
			}
		})
	}
}
