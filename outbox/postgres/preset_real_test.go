package postgres

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/pgserver"
)

func TestBasicRowsComeInTheirSequence(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		for _, after := range []AfterPublish{MarkIt, Delete} {
			h := newHouse(t, srv, event.Basic, basicTable, func(o *Options) { o.AfterPublish = after })
			for _, n := range []int{3, 1, 2, 4} {
				h.exec(`insert into public.outbox (id, aggregate_type, aggregate_id) values ($1, 'a', 'k')`, id(n))
			}
			if tr := h.Traits(); tr.Claims || tr.Retries || !tr.States {
				t.Fatalf("traits %+v", tr)
			}
			c := h.claim(outbox.Request{Limit: 3})
			same(t, "claim", rowIDs(c), []string{id(3), id(1), id(2)})
			if r := &c.Rows[0]; r.Key != "k" || r.Route != "a" || r.Event.CommitMicros == 0 || c.Fence != "" {
				t.Fatalf("row %+v", r)
			}
			lost := h.settle(outbox.Outcome{ID: id(3)}, outbox.Outcome{ID: id(1), Verdict: outbox.Retry}, outbox.Outcome{ID: id(2), Verdict: outbox.Failed}, outbox.Outcome{ID: id(9)})
			if !slices.Equal(lost, []int{3}) {
				t.Fatalf("lost %v", lost)
			}
			same(t, "then", rowIDs(h.claim(outbox.Request{Limit: 3, Except: []string{id(7)}})), []string{id(1), id(4)})
			left := map[AfterPublish]string{MarkIt: "4", Delete: "2"}[after]
			if got := h.ask(`select count(*)::text from public.outbox`); got != left {
				t.Fatalf("%s: %s rows left", after, got)
			}
		}
	})
}

func TestADebeziumClaimIsATransactionThatEndsWithItsLastOutcome(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h := newHouse(t, srv, event.Debezium, debeziumTable, nil)
		h.exec(`insert into public.outbox (id, aggregatetype, aggregateid, "timestamp") select ('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid, 'a', 'k' || n, now() - n * interval '1 minute' from generate_series(1, 6) n`)
		count := func(want string) {
			t.Helper()
			if got := h.ask(`select count(*)::text from public.outbox`); got != want {
				t.Fatalf("%s rows, want %s", got, want)
			}
		}
		first := h.claim(outbox.Request{Limit: 3})
		same(t, "first", rowIDs(first), []string{id(6), id(5), id(4)})
		second := h.claim(outbox.Request{Limit: 9, Held: []string{"k3"}})
		same(t, "second", rowIDs(second), []string{id(2), id(1)})
		if _, held, err := h.Renew(h.ctx(), first.Fence, []string{id(4), id(1)}); err != nil || !slices.Equal(held, []string{id(4)}) {
			t.Fatalf("held %v, %v", held, err)
		}
		of := func(c *outbox.Claim, n int, v outbox.Verdict) outbox.Outcome {
			return outbox.Outcome{ID: id(n), Fence: c.Fence, Verdict: v}
		}
		if lost := h.settle(of(first, 6, outbox.Published), of(second, 2, outbox.Released), of(first, 5, outbox.Failed)); len(lost) != 0 {
			t.Fatalf("lost %v", lost)
		}
		count("6") // nothing is committed before the claim's last outcome
		if lost := h.settle(of(first, 4, outbox.Retry), of(first, 6, outbox.Published), of(second, 1, outbox.Published)); !slices.Equal(lost, []int{1}) {
			t.Fatalf("lost %v", lost)
		}
		count("3")
		same(t, "given back", rowIDs(h.claim(outbox.Request{Limit: 9})), []string{id(4), id(3), id(2)})
		if n := h.ask(`select count(*)::text from pg_stat_activity where datname = current_database() and state like 'idle in transaction%' and pid <> pg_backend_pid()`); n != "1" {
			t.Fatalf("%s transactions are open, want that of the last claim", n)
		}
	})
}

func TestADebeziumClaimWhoseConnectionBrokeIsLost(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h := newHouse(t, srv, event.Debezium, debeziumTable, nil)
		h.exec(`insert into public.outbox (id, aggregatetype, aggregateid) values ('` + id(1) + `', 'a', 'k'), ('` + id(2) + `', 'a', 'k')`)
		c := h.claim(outbox.Request{Limit: 2})
		h.exec(`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'`)
		if _, held, err := h.Renew(h.ctx(), c.Fence, ids(1, 2)); err != nil || len(held) != 0 {
			t.Fatalf("held %v, %v", held, err)
		}
		if lost := h.settle(outbox.Outcome{ID: id(1), Fence: c.Fence}); len(lost) != 1 {
			t.Fatalf("lost %v", lost)
		}
		same(t, "again", rowIDs(h.claim(outbox.Request{Limit: 2})), ids(1, 2))
	})
}

func TestDebeziumUnderALeaseDeletesWhatIsPublished(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h := newHouse(t, srv, event.Debezium, debeziumTable, func(o *Options) { o.Claim = ClaimLease })
		h.exec(`insert into public.outbox (id, aggregatetype, aggregateid, payload) values ('` + id(1) + `', 'a', 'k', null), ('` + id(2) + `', 'a', 'k', '1')`)
		c := h.claim(outbox.Request{Limit: 2})
		if len(c.Rows) != 2 || c.Rows[0].Event.Fields[event.Payload] != nil || c.Rows[0].Event.Refused != nil {
			t.Fatalf("rows %+v", c.Rows)
		}
		if lost := h.settle(outbox.Outcome{ID: id(1)}, outbox.Outcome{ID: id(2), Verdict: outbox.Released}); len(lost) != 0 {
			t.Fatalf("lost %v", lost)
		}
		if m := h.mark(outbox.Mark{ID: id(2)}, outbox.Mark{ID: id(1)}); m.Pending != 1 || m.Absent != 1 {
			t.Fatalf("marked %+v", m)
		}
	})
}

func TestOldTablesWithoutTheOptionalColumnsWork(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		ddl := forzeTable + `alter table public.outbox drop hlc, drop traceparent, drop available_at, drop attempts, drop ordering_key, drop last_error, drop published_at;`
		h := newHouse(t, srv, event.Forze, ddl, nil)
		h.exec(`insert into public.outbox (id, outbox_route, created_at) select ('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid, 'a', '2026-01-01'::timestamptz + n * interval '1 s' from generate_series(1, 4) n`)
		if tr := h.Traits(); tr.Retries || !tr.States || !tr.Claims {
			t.Fatalf("traits %+v", tr)
		}
		c := h.claim(outbox.Request{Limit: 3})
		same(t, "claim", rowIDs(c), ids(1, 3))
		if c.Rows[0].Key != string(c.Rows[0].Event.Fields[event.EventID]) {
			t.Fatalf("key %s", c.Rows[0].Key)
		}
		h.settle(outbox.Outcome{ID: id(1), Fence: c.Fence}, outbox.Outcome{ID: id(2), Fence: c.Fence, Verdict: outbox.Failed, Error: "x"}, outbox.Outcome{ID: id(3), Fence: c.Fence, Verdict: outbox.Released})
		if got := h.ask(`select string_agg(status, ' ' order by id) from public.outbox`); got != "published failed pending pending" {
			t.Fatal(got)
		}
		_, err := h.Settle(h.ctx(), []outbox.Outcome{{ID: id(1), Fence: c.Fence, Verdict: outbox.Retry}})
		precondition(t, err, `no column "available_at"`)
		if m := h.mark(outbox.Mark{ID: id(4), Error: "x"}); m.Pending != 1 {
			t.Fatalf("marked %+v", m)
		}
		if _, _, err := h.Unfinished(h.ctx(), outbox.Shards{}, 5); err != nil {
			t.Fatal(err)
		}
		if n, err := h.Requeue(h.ctx(), ids(1, 4)); err != nil || n != 2 {
			t.Fatal(n, err)
		}
		if _, err := h.Figures(h.ctx()); err != nil {
			t.Fatal(err)
		}
		h.exec(`alter table public.outbox drop processing_at`)
		bare, _ := h.another(event.Forze, nil)
		_, err = bare.Claim(h.ctx(), outbox.Request{Limit: 1})
		precondition(t, err, `no column "processing_at"`)
		leased, _ := h.another(event.Forze, func(o *Options) { o.Claim = ClaimLease })
		if c, err := leased.Claim(h.ctx(), outbox.Request{Limit: 9}); err != nil || len(c.Rows) != 3 {
			t.Fatalf("%+v, %v", c, err)
		}
	})
}

// precondition asserts a Halt with a remedy.
func precondition(t *testing.T, err error, words string) {
	t.Helper()
	var e *event.Error
	if !errors.As(err, &e) || e.Class != event.Halt || e.Fault != event.FaultPrecondition || e.Remedy == "" || !strings.Contains(e.What, words) {
		t.Fatalf("want a precondition with %q, got %v", words, err)
	}
}

func TestWhatNoMethodCanDoWithoutIsSaidAtTheStart(t *testing.T) {
	t.Parallel()
	srv := pgserver.Shared(t, pgserver.V18)
	for _, c := range []struct {
		preset event.Preset
		ddl    string
		words  string
	}{
		{event.Forze, forzeTable + `alter table public.outbox drop event_id`, `no column "event_id"`},
		{event.Basic, basicTable + `alter table public.outbox drop published_at`, `no column "published_at"`},
		{event.Forze, forzeTable + `alter table public.outbox rename to other`, `does not exist`},
	} {
		h := newHouse(t, srv, event.Forze, forzeTable, nil)
		h.exec(`drop table public.outbox;` + c.ddl)
		schema, _ := event.NewSchema(c.preset, nil)
		o := h.db.o
		o.Schema = schema
		_, err := New(o).Tables(h.ctx())
		precondition(t, err, c.words)
	}
	h := newHouse(t, srv, event.Forze, forzeTable, func(o *Options) { o.AfterPublish = Keep })
	h.insert(1, 2, 2)
	_, err := h.Claim(h.ctx(), outbox.Request{Limit: 1})
	precondition(t, err, "kept unmarked")
	if m := h.mark(outbox.Mark{ID: id(1)}); m.Settled != 1 {
		t.Fatalf("marked %+v", m)
	}
	h.wantRow(1, "pending attempts=0")
}

func TestValuesAreTheBytesThatTheLogPrints(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		ddl := `create schema "Odd ""Schema"; create table public.outbox ("Row Id" bigint primary key, event_id text not null, outbox_route char(9) not null, event_type text not null default '',
 occurred_at timestamptz not null, payload bytea, status text not null default 'pending', ordering_key char(5), amount float8, "Ü" bytea, created_at timestamp, processing_at timestamptz(3))`
		h := &house{t: t, srv: srv, name: srv.NewDatabase(t)}
		h.conn = srv.Conn(t, h.name)
		h.exec(ddl)
		h.exec(`alter role current_user in database ` + h.name + ` set extra_float_digits = 0; alter role current_user in database ` + h.name + ` set bytea_output = 'escape';
 alter role current_user in database ` + h.name + ` set default_transaction_read_only = on; alter role current_user in database ` + h.name + ` set search_path = ''`)
		schema := map[event.Field]string{event.RowID: "Row Id"}
		h.Table, h.db = h.another(event.Forze, func(o *Options) {
			o.Schema, _ = event.NewSchema(event.Forze, schema)
			o.ExtraColumns = []string{"amount", "nowhere", "Ü"}
		})
		h.exec(`insert into public.outbox values (7, '{e"1\}', 'r', 'it''s', '2026-03-01 12:00:00.5+02', '\x00ff5c27', 'pending', 'ab', 0.1::float8 + 0.2, '', '2026-01-01', null),
 (8, 'e2', 'r', '', 'infinity', null, 'pending', null, null, null, 'infinity', null)`)
		c := h.claim(outbox.Request{Limit: 5, Held: []string{"other"}})
		same(t, "claim", rowIDs(c), []string{"7", "8"})
		f := &c.Rows[0].Event
		for what, got := range map[string][2]string{
			"payload": {string(f.Fields[event.Payload]), "\x00\xff\x5c\x27"}, "key": {c.Rows[0].Key, "ab   "}, "event id": {string(f.Fields[event.EventID]), `{e"1\}`},
			"time": {string(f.Fields[event.OccurredAt]), "2026-03-01 10:00:00.5+00"}, "float": {string(f.Extra[0]), "0.30000000000000004"}, "type": {string(f.Fields[event.Type]), "it's"},
		} {
			if got[0] != got[1] {
				t.Errorf("%s is %q, want %q", what, got[0], got[1])
			}
		}
		if f.Extra[1] != nil || f.Extra[2] == nil || len(f.Extra[2]) != 0 || c.Rows[1].Event.Fields[event.Payload] != nil || c.Rows[1].Key != "e2" {
			t.Errorf("extras %v, second row %+v", f.Extra, c.Rows[1])
		}
		if c := h.claim(outbox.Request{Limit: 5, Held: []string{"ab   "}, Only: []string{"7"}}); len(c.Rows) != 0 {
			t.Error("a held key with blanks was claimed")
		}
		if lost := h.settle(outbox.Outcome{ID: "7", Fence: c.Fence}, outbox.Outcome{ID: "8", Fence: c.Fence}); len(lost) != 0 {
			t.Errorf("lost %v of a claim with fence %s", lost, c.Fence)
		}
	})
}

func TestARowThatLacksARequiredValueIsRefusedAlone(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h := newHouse(t, srv, event.Forze, forzeTable+`alter table public.outbox alter event_type drop not null`, nil)
		h.insert(1, 3, 3)
		h.exec(`update public.outbox set event_type = null where hlc = 2`)
		c := h.claim(outbox.Request{Limit: 3})
		if len(c.Rows) != 3 || c.Rows[0].Event.Refused != nil || c.Rows[2].Event.Refused != nil || event.ClassOf(c.Rows[1].Event.Refused) != event.Poison {
			t.Fatalf("%+v", c.Rows)
		}
	})
}
