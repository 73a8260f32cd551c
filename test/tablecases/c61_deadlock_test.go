package tablecases

// C61 Deadlock between writer, relay and cleaner.
// Source: aikirun/aiki#196, openobserve/openobserve#13251, getsentry/taskbroker#778,
// zulip/zulip#19054.
// Ideal: no deadlock that the relay's statements cause; chosen as a victim it
// repeats the same marks without publishing again. (15 s of the application's
// reverse updates instead of 10 minutes; the server looks for deadlocks after
// 50 ms instead of 1 s.)

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
)

func TestC61MarksMeetNobodyInADeadlock(t *testing.T) {
	t.Parallel()
	for _, capture := range []string{"poll", "log"} {
		t.Run(capture, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, v pgserver.Version) { reverseUpdates(t, v, capture) })
		})
	}
}

func reverseUpdates(t *testing.T, v pgserver.Version, capture string) {
	pg := pgserver.Start(t, pgserver.Options{Version: v, Settings: map[string]string{"deadlock_timeout": "50ms"}})
	tb := newTable(t, pg, kafkaserver.Shared(t), 6)
	tb.poll("interval: 100ms")
	tb.Postgres = "capture: " + capture + "\n"
	tb.Source += "retention: {keep_published: 2s, batch: 500, every: 1s}\n"
	tb.Init(t)
	r := startAll(t, tb.House)[0]
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	victims := 0
	var application sync.WaitGroup
	conn := tb.PG.Conn(t, tb.Database)
	application.Go(func() {
		for ctx.Err() == nil {
			// An operator's own statement, which visits the newest rows first. It takes
			// one lock after another, as an update without an index order does.
			_, err := conn.Exec(context.WithoutCancel(ctx), `do $$
				declare r uuid;
				begin
					for r in select id from public.outbox order by id desc limit 300 loop
						update public.outbox set traceparent = 'touched' where id = r;
					end loop;
				end $$`)
			var refused *pgconn.PgError
			if errors.As(err, &refused) && refused.Code == "40P01" {
				victims++
			} else if err != nil {
				t.Errorf("the application's update: %v", err)
				return
			}
		}
	})
	for ctx.Err() == nil {
		tb.fill(t, 500, 50, 500)
	}
	application.Wait()
	tb.becomes(t, "0", 2*soon, `select (count(*) filter (where status <> 'published'))::text from public.outbox`)
	tb.becomes(t, "true", soon, `select (count(*) < 100000)::text from public.outbox`)
	stopAll(t, r)
	records := tb.k.Consume(t, tb.Topic)
	seen := map[string]int{}
	for _, n := range numbers(records) {
		seen[n]++
	}
	if int64(len(seen)) != tb.n || int64(len(records)) != tb.n {
		t.Errorf("%d rows were committed, the topic has %d records of %d rows", tb.n, len(records), len(seen))
	}
	deadlocks := strings.Count(pg.Log(), "deadlock detected")
	t.Logf("%d rows, %d deadlocks in the server's log, the application was the victim %d times", tb.n, deadlocks, victims)
	if deadlocks > 0 {
		t.Errorf("%d deadlocks", deadlocks)
	}
}
