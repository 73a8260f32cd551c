package tablecases

// C59 Claim gets slow while somebody holds an old snapshot.
// Source: que-rb/que#297, NikolayS/PgQue#80, riverqueue/river#59, hardbyte/awa#169.
// Ideal: beside a snapshot that is held all the time, claims at the end take at
// most five times as long as in the beginning; two row versions per event at most;
// dead tuples and the time of a claim show in the metrics. (100 000 rows at once
// instead of 500 a second for 30 minutes: what makes claims slow is the number of
// dead versions, not their age.)

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

func TestC59ClaimsStayQuickBesideAHeldSnapshot(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, v pgserver.Version) {
		// A server of its own: the snapshot holds vacuum back in all databases.
		tb := newTable(t, pgserver.Start(t, pgserver.Options{Version: v}), kafkaserver.Shared(t), 6)
		tb.poll("interval: 100ms")
		tb.Init(t)
		holder, err := tb.PG.Conn(t, tb.Database).BeginTx(context.Background(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = holder.Rollback(context.Background()) }()
		if _, err := holder.Exec(context.Background(), `select count(*) from public.outbox`); err != nil {
			t.Fatal(err)
		}
		r := startAll(t, tb.House)[0]
		early := claimTime(t, tb, r, 5_000)
		tb.fill(t, 90_000, 1000, 10_000)
		tb.published(t, 2*soon)
		late := claimTime(t, tb, r, 5_000)
		t.Logf("a claim took %s in the beginning and %s after 95 000 events", early, late)
		// A floor, so that two quick claims on a busy machine are not compared.
		if late > 5*max(early, 10*time.Millisecond) {
			t.Errorf("claims take %s, in the beginning they took %s", late, early)
		}
		if got := tb.ask(t, `select (n_tup_upd <= 2 * n_tup_ins)::text from pg_stat_user_tables where relname = 'outbox'`); got != "true" {
			t.Error("more than two updates per event: " + tb.ask(t, `select n_tup_upd || ' of ' || n_tup_ins from pg_stat_user_tables where relname = 'outbox'`))
		}
		rig.Eventually(t, "the dead tuples in the metrics", soon, func() error {
			if r.Metric("walrelay_outbox_dead_tuples") < 1 {
				return errNotYet
			}
			return nil
		})
		stopAll(t, r)
	})
}

// claimTime is the mean time of a claim while so many rows go through.
func claimTime(t *testing.T, tb *table, r *rig.Relay, rows int) time.Duration {
	t.Helper()
	sum, count := r.Metric("walrelay_claim_seconds_sum"), r.Metric("walrelay_claim_seconds_count")
	tb.fill(t, rows, 1000, 1000)
	tb.published(t, soon)
	n := r.Metric("walrelay_claim_seconds_count") - count
	if n == 0 {
		t.Fatal("no claim was timed")
	}
	return time.Duration((r.Metric("walrelay_claim_seconds_sum") - sum) / n * float64(time.Second))
}
