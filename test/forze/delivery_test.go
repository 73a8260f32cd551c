package forze

// Battery A: the crash between the broker's acknowledgement and the mark, and what a
// consumer makes of the duplicates.

import (
	"context"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

// inbox is forze's, with a table of what handlers did.
const inbox = `create table public.inbox (inbox_route text, message_id text, processed_at timestamptz not null, primary key (inbox_route, message_id));
	create table public.applied (event_id text, n bigint generated always as identity)`

// apply has a consumer handle records: the mark in the inbox, if it has one, and the handler
// in one transaction. The id is that of the header, never the key.
func (d *database) apply(t *testing.T, consumer string, withInbox bool, records []*kgo.Record) (applied int) {
	t.Helper()
	for _, r := range records {
		event := header(r, "forze_event_id")
		tx, err := d.conn.Begin(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		first := true
		if withInbox {
			tag, err := tx.Exec(context.Background(), `insert into public.inbox values ($1, $2, now()) on conflict do nothing`, consumer, event)
			if err != nil {
				t.Fatal(err)
			}
			first = tag.RowsAffected() == 1
		}
		if first {
			applied++
			if _, err := tx.Exec(context.Background(), `insert into public.applied (event_id) values ($1)`, event); err != nil {
				t.Fatal(err)
			}
		}
		if err := tx.Commit(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	return applied
}

func header(r *kgo.Record, key string) string {
	for _, h := range r.Headers {
		if h.Key == key {
			return string(h.Value)
		}
	}
	return ""
}

// A1, A2, A3: five events are published, the relay dies before it has marked them, another
// one publishes them again and marks them. With an inbox five are applied, without one ten, and
// nothing is lost or invented. The rows end published.
//
// A trigger has the mark wait while Kafka takes the records; the connection that waits dies
// with the relay.
func TestCrashBeforeTheMarkDeliversTwiceAndAppliesOnce(t *testing.T) {
	onEach(t, func(t *testing.T, v pgserver.Version) {
		for _, w := range []way{byPolling, byLog} {
			t.Run(string(w), func(t *testing.T) {
				t.Parallel()
				h := newHouse(t, v, w)
				h.PG.ExecIn(t, h.Database, inbox)
				h.PG.ExecIn(t, h.Database, `create function wait_to_mark() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(1); return new; end $$;
					create trigger wait_to_mark before update on public.outbox for each row when (new.status = 'published') execute function wait_to_mark()`)
				h.exec(`select pg_advisory_lock(1)`)
				first := h.start(t)
				var rows []given
				for i := range 5 {
					rows = append(rows, given{
						route: "conformance_delivery", key: fmt.Sprintf("key %d", i), typ: "conformance.evt", payload: fmt.Sprintf(`{"n": %d}`, i),
					})
				}
				staged := h.flush(rows...)
				h.records(t, 5)
				const waits = `from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
				h.becomes("true", `select (count(*) > 0)::text `+waits)
				first.Kill()
				h.becomes("0", `select count(*) filter (where pg_terminate_backend(pid)) * 0 + count(*) `+waits)
				h.exec(`select pg_advisory_unlock(1)`)
				for _, id := range staged {
					if w == byPolling {
						h.is(id, changes{"status": "processing", "processing_at": h.ever()})
					} else {
						h.is(id, changes{})
					}
				}

				second := h.start(t)
				h.becomes("published 5", states)
				stop(t, second)
				delivered := h.records(t, 10)
				if len(delivered) != 10 {
					t.Fatalf("%d records, want 10", len(delivered))
				}
				for _, id := range staged {
					if w == byPolling {
						h.isMarked(id, changes{"attempts": 1, "available_at": h.ever()}) // one try was lost
					} else {
						h.isMarked(id, nil)
					}
				}
				if n := h.apply(t, "with", true, delivered); n != 5 {
					t.Errorf("with an inbox %d were applied, want 5", n)
				}
				if n := h.apply(t, "without", false, delivered); n != 10 {
					t.Errorf("without an inbox %d were applied, want 10", n)
				}
				if got := h.ask(`select count(distinct a.event_id) || ' of ' || (select count(*) from public.outbox)
					from public.applied a join public.outbox o on o.event_id::text = a.event_id`); got != "5 of 5" {
					t.Errorf("distinct events applied: %s, want 5 of 5", got)
				}
			})
		}
	})
}

// B9, B13 beside the log: a row that is due later, and a failed one that forze's
// admin requeues, are published by the same relay, each once, in time.
func TestRowsThatTheLogDoesNotBringInTimeArePublishedOnce(t *testing.T) {
	onEach(t, func(t *testing.T, v pgserver.Version) {
		h := newHouse(t, v, byLog)
		r := h.start(t)
		due := h.now().Add(3_000_000_000)
		ids := h.flush(given{key: "later", available: due}, given{key: "now"})
		h.becomes("pending 1, published 1", states)
		h.becomes("published 2", states)
		h.isPublished(ids[0], changes{"published_at": h.since(due), "processing_at": h.since(due)})
		h.isMarked(ids[1], nil)
		// One that failed long ago, and was requeued.
		h.exec(`update public.outbox set status = 'failed', attempts = 4, last_error = 'gone', published_at = null where id = $1::uuid`, ids[1])
		if n := h.exec(forzeRequeue, ids[1:]); n != 1 {
			t.Fatalf("the requeue touched %d rows", n)
		}
		h.becomes("published 2", states)
		h.isPublished(ids[1])
		stop(t, r)
		seen := map[string]int{}
		for _, rec := range h.records(t, 3) {
			seen[string(rec.Key)]++
		}
		if seen["later"] != 1 || seen["now"] != 2 {
			t.Errorf("records by key: %v, want later once, now once and once more after the requeue", seen)
		}
	})
}

// C15: options that make no sense are refused with the place where they are.
func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	onEach(t, func(t *testing.T, v pgserver.Version) {
		for option, place := range map[string]string{
			"attempts: 0":                      "poll.attempts",
			"backoff_min: 0s":                  "poll.backoff_min",
			"backoff_min: 2m, backoff_max: 1m": "poll.backoff_min",
			"batch: 0":                         "poll.batch",
			"interval: 0s":                     "poll.interval",
			"lease: 20s, reclaim_after: 10s":   "poll.reclaim_after",
		} {
			h := &rig.House{
				PG: pgserver.Shared(t, v), Database: "none", Brokers: []string{"127.0.0.1:9"}, Topic: "t", Slot: "s", Publication: "p", Preset: "forze",
				Postgres: "capture: poll\n", Source: "after_publish: mark\npoll: {" + option + "}\n", Kafka: "on_poison: park\n",
			}
			out, code := h.Command(t, "check")
			if code != 2 || !contains(out, place) {
				t.Errorf("%s: exit %d, want 2 and %s named:\n%s", option, code, place, out)
			}
		}
	})
}
