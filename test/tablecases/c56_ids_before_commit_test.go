package tablecases

// C56 Ids handed out before commit.
// Source: kamu-data/kamu-cli#1398, Eventuous/eventuous#222,
// eugene-khyst/postgresql-event-sourcing#2, CargoSense/fable#22.
// Ideal: nothing is lost; rows of overlapping transactions come in the order in
// which they were committed, polling and from the log alike, whatever their ids.

import (
	"context"
	"slices"
	"testing"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
)

func TestC56RowThatCommitsLateIsNeitherLostNorForgotten(t *testing.T) {
	t.Parallel()
	for _, capture := range []string{"poll", "log"} {
		for _, preset := range []string{"forze", "basic"} {
			t.Run(capture+" "+preset, func(t *testing.T) {
				t.Parallel()
				onEach(t, func(t *testing.T, v pgserver.Version) { lateCommit(t, v, capture, preset) })
			})
		}
	}
}

func lateCommit(t *testing.T, v pgserver.Version, capture, preset string) {
	tb := newTable(t, pgserver.Shared(t, v), kafkaserver.Shared(t), 1)
	tb.poll("interval: 200ms")
	tb.Postgres = "capture: " + capture + "\n"
	tb.Preset = preset
	tb.Init(t)
	insert := `insert into public.outbox (id, event_id, outbox_route, event_type, occurred_at, payload, ordering_key)
		values (('00000000-0000-7000-8000-' || lpad(($1::bigint)::text, 12, '0'))::uuid, gen_random_uuid(), 'orders', 'Tested', now(), jsonb_build_object('n', $1::bigint), 'k')`
	done := `select (count(*) filter (where status = 'published'))::text from public.outbox`
	if preset == "basic" {
		insert = `insert into public.outbox (aggregate_type, aggregate_id, event_type, payload) values ('orders', 'k', 'Tested', jsonb_build_object('n', $1::bigint))`
		done = `select (count(published_at))::text from public.outbox`
		// A session that takes numbers in advance hands them out later than others do.
		tb.Exec(t, `alter table public.outbox alter column seq set cache 50`)
	}
	r := startAll(t, tb.House)[0]
	ctx := context.Background()
	first, second := tb.PG.Conn(t, tb.Database), tb.PG.Conn(t, tb.Database)
	tx, err := first.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, insert, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Exec(ctx, insert, 2); err != nil {
		t.Fatal(err)
	}
	tb.becomes(t, "1", soon, done)
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	tb.becomes(t, "2", soon, done)
	if _, err := first.Exec(ctx, insert, 3); err != nil {
		t.Fatal(err)
	}
	tb.becomes(t, "3", soon, done)
	stopAll(t, r)
	if got := numbers(tb.k.Consume(t, tb.Topic)); !slices.Equal(got, []string{"2", "1", "3"}) {
		t.Errorf("the topic has %v, committed were 2, 1, 3", got)
	}
}
