package tablecases

// C29 Updates and deletes on the outbox table.
// Source: DBZ-2847 (debezium/debezium#2011), DBZ-4012 (#2922).
// Ideal: exactly one record per inserted row, also for a row that is deleted in the
// same transaction; updates (the relay's own marks, the application's, those of
// rows with a payload that lies outside the row) and deletes are never published.

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
)

func TestC29OnlyInsertsArePublished(t *testing.T) {
	t.Parallel()
	for _, after := range []string{"mark", "delete", "keep"} {
		t.Run(after, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, v pgserver.Version) { updatesAndDeletes(t, v, after) })
		})
	}
}

func updatesAndDeletes(t *testing.T, v pgserver.Version, after string) {
	tb := newTable(t, pgserver.Shared(t, v), kafkaserver.Shared(t), 1)
	tb.Source = "after_publish: " + after + "\nsweep_every: 1s\n"
	tb.Init(t)
	tb.Exec(t, `alter table public.outbox alter column payload set storage external`)
	r := startAll(t, tb.House)[0]
	// $1 is the row's number; its payload lies outside the row.
	const insert = `insert into public.outbox (id, event_id, outbox_route, event_type, occurred_at, payload, ordering_key)
		values (('00000000-0000-7000-8000-' || lpad(($1::bigint)::text, 12, '0'))::uuid, gen_random_uuid(), 'orders', 'Tested', now(),
		jsonb_build_object('n', $1::bigint, 'pad', repeat(md5(($1::bigint)::text), 400)), 'k')`
	const byNumber = ` where id = ('00000000-0000-7000-8000-' || lpad(($1::bigint)::text, 12, '0'))::uuid`
	ctx := context.Background()
	conn := tb.PG.Conn(t, tb.Database)
	step := func(n int, statements ...string) {
		t.Helper()
		tx, err := conn.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, sql := range statements {
			if _, err := tx.Exec(ctx, sql, n); err != nil {
				t.Fatal(err)
			}
		}
		if err := tx.Commit(ctx); err != nil {
			t.Fatal(err)
		}
	}
	step(1, insert)
	// Below the start line the table is asked, and a row that somebody calls published
	// is left out: from here on the relay has it behind itself.
	tb.k.ConsumeN(t, 1, soon, tb.Topic)
	step(1, `update public.outbox set traceparent = 'touched'`+byNumber)
	step(2, insert)
	step(2, `update public.outbox set status = 'published', published_at = now()`+byNumber)
	step(3, insert)
	step(3, `delete from public.outbox`+byNumber)
	step(4, insert, `delete from public.outbox`+byNumber)
	// In one transaction: a row that was published and deleted meanwhile would be new.
	step(5, insert, insert+` on conflict (id) do update set traceparent = 'again'`)
	step(6, insert, `update public.outbox set traceparent = 'touched'`+byNumber)
	step(7, insert)
	tb.k.ConsumeN(t, 7, soon, tb.Topic)
	want := `select '0'::text`
	switch after {
	case "mark":
		want = `select (count(*) filter (where status <> 'published'))::text from public.outbox`
	case "delete":
		// The one that the application itself called published is not ours to delete.
		want = `select (count(*) filter (where status <> 'published'))::text from public.outbox`
	}
	tb.becomes(t, "0", soon, want)
	stopAll(t, r)
	records := tb.k.Consume(t, tb.Topic)
	var got []string
	for _, r := range records {
		var n int
		if _, err := fmt.Sscanf(string(r.Value), `{"n": %d, "pad":`, &n); err != nil {
			t.Errorf("a record has the value %.60q", r.Value)
		}
		got = append(got, fmt.Sprint(n))
		if len(r.Value) < 400*32 {
			t.Errorf("record %d has %d bytes: its payload was not whole", n, len(r.Value))
		}
	}
	if !slices.Equal(got, []string{"1", "2", "3", "4", "5", "6", "7"}) {
		t.Errorf("the topic has %v, want 1 to 7 once each", got)
	}
}
