package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/walrelay/walrelay/stage"
	"github.com/walrelay/walrelay/test/pgserver"
)

func full() stage.Event {
	return stage.Event{
		Route: "orders", Type: "OrderPlaced", Key: "order-1", Payload: json.RawMessage(`{"total": "19.99", "big": 1e30}`), ID: id(1),
		Identity:   stage.Identity{Tenant: id(0xa), Execution: id(0xb), Correlation: id(0xc), Causation: id(0xd)},
		OccurredAt: time.Date(2026, 6, 1, 12, 0, 0, 7000, time.UTC), Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	}
}

// Outbox contract, 1.1. The table's own default of attempts is another one here, so
// that what is written shows.
func TestRowHasTheColumnsOfTheContract(t *testing.T) {
	onEach(t, func(t *testing.T, h *house) {
		// A clock's millisecond, and a session whose zone is another.
		h.exec(fmt.Sprintf(`alter database %s set timezone = 'Europe/Moscow'`, h.name))
		h.pool.Reset()
		x := h.open(Options{}, func() time.Time { return time.UnixMilli(1_700_000_000_000).Add(1234567) })
		res := h.flush(x, full(), stage.Event{Route: "orders", Type: "OrderPaid", Payload: struct{}{}, ID: id(2)})
		if res.Written != 2 || len(res.Ignored) != 0 || res.Mark.String() != "001700000000001.00001" {
			t.Errorf("result %+v", res)
		}
		rows := h.rows()
		if len(rows) != 2 {
			t.Fatalf("%d rows", len(rows))
		}
		var ids []string
		for _, r := range rows {
			row, err := uuid.Parse(r["id"].(string))
			if err != nil || row.Version() != 7 || row == id(1) || row == id(2) {
				t.Errorf("row id %s: want a UUIDv7 of its own", r["id"])
			}
			ids = append(ids, r["id"].(string))
			delete(r, "id")
		}
		if ids[0] >= ids[1] {
			t.Errorf("row ids %s are not in order", ids)
		}
		want := []string{
			`attempts=0 causation_id="0198f3a0-0000-7000-8000-00000000000d" correlation_id="0198f3a0-0000-7000-8000-00000000000c" created_at="2023-11-15T01:13:20.001234+03:00" ` +
				`event_id="0198f3a0-0000-7000-8000-000000000001" event_type="OrderPlaced" execution_id="0198f3a0-0000-7000-8000-00000000000b" hlc=111411200000065536 ` +
				`occurred_at="2026-06-01T15:00:00.000007+03:00" ordering_key="order-1" outbox_route="orders" payload={"big":1000000000000000000000000000000,"total":"19.99"} status="pending" ` +
				`tenant_id="0198f3a0-0000-7000-8000-00000000000a" traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"`,
			`attempts=0 created_at="2023-11-15T01:13:20.001234+03:00" event_id="0198f3a0-0000-7000-8000-000000000002" event_type="OrderPaid" hlc=111411200000065537 ` +
				`occurred_at="2023-11-15T01:13:20.001234+03:00" outbox_route="orders" payload={} status="pending"`,
		}
		for i, w := range want {
			if got := show(rows[i]); got != w {
				t.Errorf("row %d:\n%s, want\n%s", i, got, w)
			}
		}
	})
}

func TestOptionalColumnsAreWrittenOnlyIfAskedFor(t *testing.T) {
	onEach(t, func(t *testing.T, h *house) {
		h.exec(`alter table outbox drop hlc, drop traceparent; drop table hlc_checkpoint`)
		h.flush(h.open(Options{OmitHLC: true, OmitTraceparent: true}), full())
		h.exec(`alter table outbox add traceparent text, add aggregate_version bigint`)
		e := full()
		e.ID, e.AggregateVersion = id(2), 7
		none := full()
		none.ID = id(3)
		h.flush(h.open(Options{OmitHLC: true, AggregateVersion: true}), e, none)
		h.wants("1:-:- 2:00-0af:7 3:00-0af:-", `select string_agg(concat_ws(':', right(event_id::text, 1), coalesce(left(traceparent, 6), '-'), coalesce(aggregate_version::text, '-')), ' ' order by event_id) from outbox`)
		if _, err := Open(context.Background(), h.db(), Options{}); err == nil {
			t.Error("an outbox with a checkpoint was opened without its table")
		}
	})
}

// A schema, a table and a mark's table by any name.
func TestTablesMayHaveAnyName(t *testing.T) {
	onEach(t, func(t *testing.T, h *house) {
		h.exec(`create schema "My Shop"; alter table outbox set schema "My Shop"; alter table "My Shop".outbox rename to "out""box"`)
		o := Options{Table: pgx.Identifier{"My Shop", `out"box`}}
		h.exec(Checkpoint{Table: pgx.Identifier{"My Shop", "hlc_checkpoint"}}.DDL())
		res := h.flush(h.open(o), full())
		h.wants(packed(res.Mark), `select o.hlc::text from "My Shop"."out""box" o join "My Shop".hlc_checkpoint c using (hlc)`)
	})
}

func TestRolledBackFlushLeavesNothingAndTheBufferIsEmpty(t *testing.T) {
	onEach(t, func(t *testing.T, h *house) {
		x := h.open(Options{})
		first := h.flush(x, some(1)...)
		b := h.stage(x.Buffer(), some(3)...)
		w := h.begin()
		if res, err := x.Flush(context.Background(), w.db, b); err != nil || res.Written != 3 {
			t.Fatalf("%+v %v", res, err)
		}
		h.wants("1", `select count(*)::text from outbox`) // A4: nobody else sees it yet
		h.wantsMark(first.Mark)
		w.rollback()
		h.wants("1", `select count(*)::text from outbox`)
		h.wantsMark(first.Mark)
		if b.Len() != 0 {
			t.Errorf("%d events are left in the buffer: a second attempt that stages anew would write them too", b.Len())
		}
	})
}

func TestFlushThatFailedCanBeRepeatedInAnotherTransaction(t *testing.T) {
	onEach(t, func(t *testing.T, h *house) {
		x := h.open(Options{})
		h.exec(`alter table outbox add constraint c check (event_type <> 'OrderPlaced')`)
		b := h.stage(x.Buffer(), full(), stage.Event{Route: "orders", Type: "OrderPaid", Payload: struct{}{}})
		w := h.begin()
		res, err := x.Flush(context.Background(), w.db, b)
		if sqlState(err) != "23514" || res.Written != 0 || b.Len() != 2 {
			t.Fatalf("%+v, %v, %d left in the buffer, want a check violation and 2", res, err, b.Len())
		}
		w.rollback()
		h.wants("0", `select count(*)::text from outbox`)
		h.wantsMark(0)
		h.exec(`alter table outbox drop constraint c`)
		w = h.begin()
		if res, err = x.Flush(context.Background(), w.db, b); err != nil || res.Written != 2 || b.Len() != 0 {
			t.Fatalf("the second time: %+v, %v, %d left", res, err, b.Len())
		}
		w.commit()
		h.wants("2", `select count(*)::text from outbox`)
		h.wantsMark(res.Mark)
	})
}

// B4: the first payload stays, and the flush says which events were there.
func TestEventThatIsThereAlreadyIsIgnoredAndReported(t *testing.T) {
	onEach(t, func(t *testing.T, h *house) {
		x := h.open(Options{}, frozen(1_700_000_000_000))
		h.flush(x, full())
		again, fresh, twice, elsewhere := full(), full(), full(), full()
		again.Payload = map[string]string{"total": "0"}
		fresh.ID, twice.ID = id(2), id(2)
		twice.Type = "Twice"
		elsewhere.Route = "payments"
		last := full()
		res := h.flush(x, again, fresh, twice, elsewhere, last)
		var ignored []string
		for _, s := range res.Ignored {
			ignored = append(ignored, fmt.Sprintf("%s %s %s", s.ID, s.Type, s.Stamp))
		}
		want := []string{
			id(1).String() + " OrderPlaced 001700000000000.00001", id(2).String() + " Twice 001700000000000.00003", id(1).String() + " OrderPlaced 001700000000000.00005",
		}
		if res.Written != 2 || fmt.Sprint(ignored) != fmt.Sprint(want) {
			t.Errorf("written %d, ignored %q, want 2 and %q", res.Written, ignored, want)
		}
		h.wants("19.99", `select payload->>'total' from outbox where event_id = $1::text::uuid and outbox_route = 'orders'`, id(1).String())
		// The mark covers what was ignored: its stamp was issued.
		h.wantsMark(res.Mark)
		if res.Mark.String() != "001700000000000.00005" {
			t.Errorf("mark %s", res.Mark)
		}
	})
}

// B3, and the cap of 500: one statement for as many as are allowed, in their order.
func TestFlushIsOneStatementInTheOrderOfStampsAndCapped(t *testing.T) {
	t.Parallel()
	pg := pgserver.Shared(t, pgserver.V18)
	h := newHouse(t, pg, byPgx)
	var counter statements
	conf, err := pgxpool.ParseConfig(pg.URL(h.name))
	if err != nil {
		t.Fatal(err)
	}
	conf.ConnConfig.Tracer = &counter
	pool, err := pgxpool.NewWithConfig(t.Context(), conf)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	x := h.open(Options{}, frozen(1_700_000_000_000))
	b := h.stage(x.Buffer(), some(501)...)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	counter = nil
	if _, err := x.Flush(t.Context(), Pgx(tx), b); !errors.Is(err, stage.ErrTooMany) || len(counter) != 0 || b.Len() != 501 {
		t.Fatalf("501 events: %v, statements %q, %d left", err, counter, b.Len())
	}
	b = h.stage(x.Buffer(), some(500)...)
	res, err := x.Flush(t.Context(), Pgx(tx), b)
	if err != nil || res.Written != 500 || len(counter) != 1 {
		t.Fatalf("500 events: %+v %v, in %d statements", res, err, len(counter))
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.wants("500 true", `select count(*) || ' ' || bool_and(ordered) from (select hlc > lag(hlc, 1, 0::bigint) over (order by ctid) and id > lag(id, 1, '00000000-0000-0000-0000-000000000000') over (order by ctid)
		and (payload->>'n')::int = row_number() over (order by ctid) - 1 as ordered from outbox) s`)
	h.wants("1", `select count(distinct created_at)::text from outbox`)
}

// statements collects what a connection is asked.
type statements []string

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	*s = append(*s, q.SQL)
	return ctx
}

func (s *statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func TestNothingStagedWritesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, h *house) {
		x := h.open(Options{})
		if res, err := x.Flush(context.Background(), h.db(), x.Buffer()); err != nil || res.Written != 0 || res.Mark != 0 {
			t.Errorf("%+v %v", res, err)
		}
		if err := x.Emit(context.Background(), h.db()); err != nil {
			t.Error(err)
		}
		h.wantsMark(0)
	})
}

// Any text comes out as it went in: the arrays are written by us.
func TestTextsArriveAsTheyAre(t *testing.T) {
	onEach(t, func(t *testing.T, h *house) {
		x := h.open(Options{})
		texts := []string{"NULL", "null", `"`, `\`, `\"`, `{}`, `{a,b}`, ",", " ", "  x ", "a\nb\tc", "ключ", "🜁", `\x00`, "'", "$1", "(1,2)", "%s", strings.Repeat(`\"`, 500)}
		var events []stage.Event
		for i, text := range texts {
			events = append(events, stage.Event{Route: text, Type: text, Key: text, Payload: map[string]string{text: text}, ID: id(i), Traceparent: text})
		}
		h.flush(x, events...)
		for i, text := range texts {
			if !h.has(i, text) {
				t.Errorf("text %q arrived as %s", text, h.ask(`select to_jsonb(o)::text from outbox o where event_id = $1::text::uuid`, id(i).String()))
			}
		}
	})
}

func (h *house) has(n int, text string) bool {
	h.t.Helper()
	return h.ask(`select (outbox_route = $2 and event_type = $2 and ordering_key = $2 and traceparent = $2 and payload->>$2 = $2)::text from outbox where event_id = $1::text::uuid`,
		id(n).String(), text) == "true"
}

// What staging lets through, Postgres takes, and what Postgres would refuse is not
// let through.
func TestPayloadsAreJudgedAsPostgresJudgesThem(t *testing.T) {
	t.Parallel()
	h := newHouse(t, pgserver.Shared(t, pgserver.V18), byPgx)
	h.exec(`create function accepts(t text) returns bool language plpgsql as $$ begin perform t::jsonb; return true; exception when others then return false; end $$`)
	parts := []string{`\u0000`, `\ud800`, `\udc00`, `\ud83d\ude00`, `\\u0000`, `\\`, `\"`, `\u0041`, `\uD83D`, `\uDE00`, "x", `\n`, "🜁", `\\\u0000`}
	n := 0
	for _, a := range parts {
		for _, b := range parts {
			for _, format := range []string{`{"k": "%s%s"}`, `{"%s": "x%s"}`} {
				text := fmt.Sprintf(format, a, b)
				_, err := h.open(Options{NoCheckpoint: true}).Buffer().Stage(context.Background(), stage.Event{Route: "r", Type: "t", Payload: json.RawMessage(text)})
				if accepted := h.ask(`select accepts($1)::text`, text) == "true"; accepted != (err == nil) {
					t.Errorf("%s: Postgres accepts it: %t, staging: %v", text, accepted, err)
				}
				if err == nil {
					n++
				}
			}
		}
	}
	if n < 50 {
		t.Errorf("only %d payloads were accepted", n)
	}
}
