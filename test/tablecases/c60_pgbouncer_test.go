package tablecases

// C60 Behind PgBouncer in transaction mode.
// Source: jackc/pgx#1590, malthe/pq#30, graphile/worker#125, pgbouncer/pgbouncer#1118.
// Ideal: polling works without a setting and without session state, also over a
// restart of the pooler; a replication connection through it is refused clearly.
// (20 s instead of 10 minutes; four relays share a pool of two backends.)

import (
	"strings"
	"testing"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
)

func TestC60PollingWorksBehindAPoolerInTransactionMode(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, v pgserver.Version) {
		pg := pgserver.Shared(t, v)
		tb := newTable(t, pg, kafkaserver.Shared(t), 6)
		pooler := pg.Pooler(t, nil)
		tb.URL = pooler.URL(tb.Database)
		tb.poll("batch: 50, interval: 100ms, lease: 3s, reclaim_after: 5s")
		tb.Init(t)
		if out, code := tb.Command(t, "check"); code != 0 {
			t.Errorf("walrelay check behind the pooler exited %d:\n%s", code, out)
		}
		relays := startAll(t, tb.House, tb.House, tb.House, tb.House)
		for range 10 {
			tb.fill(t, 300, 50, 10)
			tb.published(t, soon)
		}
		tb.fill(t, 3000, 50, 100)
		pooler.Restart(t)
		tb.fill(t, 300, 50, 10)
		tb.published(t, soon)
		stopAll(t, relays...)
		tb.judge(t, 0)
		for _, r := range relays {
			lacks(t, "the log", r.Log(), "26000", "42P05", "prepared statement")
		}
	})
}

func TestC60ReplicationThroughAPoolerIsRefusedClearly(t *testing.T) {
	t.Parallel()
	pg := pgserver.Shared(t, pgserver.V18)
	tb := newTable(t, pg, kafkaserver.Shared(t), 1)
	tb.Init(t)
	tb.URL = pg.Pooler(t, nil).URL(tb.Database)
	r := tb.Start(t)
	if body := strings.ToLower(r.WaitNotReady(readyWithin, "pooler")); !strings.Contains(body, "replication") {
		t.Errorf("the reason does not speak of replication: %s", body)
	}
	out, code := tb.Command(t, "check")
	if code != 3 {
		t.Errorf("walrelay check through a pooler exited %d, want 3:\n%s", code, out)
	}
	contains(t, "walrelay check", strings.ToLower(out), "pooler")
}
