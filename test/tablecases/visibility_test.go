package tablecases

// The log is ahead of visibility (DESIGN, positions, rule 8): with a synchronous
// standby that is slow to answer, the log brings a commit that no other connection
// sees yet. A mark that hits nothing then proves nothing.

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/pgserver"
)

// synchronous is a house on a primary whose commits wait for a standby. The sweep
// would find in time what the marks have missed, so there is none.
func synchronous(t *testing.T, v pgserver.Version, delay time.Duration) (*table, *pgserver.Server) {
	t.Helper()
	primary := pgserver.Start(t, pgserver.Options{Version: v})
	standby := primary.Standby(t, pgserver.StandbyOptions{Synchronous: true, ApplyDelay: delay})
	tb := logged(t, primary, "stop")
	tb.Source = "after_publish: mark\nsweep_every: 1h\n"
	tb.Init(t)
	return tb, standby
}

func TestMarkNeverRunsAheadOfVisibility(t *testing.T) {
	t.Parallel()
	for _, after := range []string{"mark", "delete"} {
		t.Run(after, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, v pgserver.Version) {
				tb, standby := synchronous(t, v, 0)
				tb.Source = "after_publish: " + after + "\nsweep_every: 1h\n"
				r := startAll(t, tb.House)[0]
				conn := tb.PG.Conn(t, tb.Database)
				floor := lsn(t, tb.ask(t, `select pg_current_wal_insert_lsn()::text`))
				standby.Pause(t)
				committed := make(chan error, 1)
				go func() {
					_, err := conn.Exec(context.Background(), insertRows, "orders", 1, 10, 5)
					committed <- err
				}()
				tb.k.ConsumeN(t, 10, soon, tb.Topic)
				during(t, 2*time.Second) // the marks are tried meanwhile
				if got := tb.ask(t, `select count(*)::text from public.outbox`); got != "0" {
					t.Fatalf("%s rows are visible: the standby answered", got)
				}
				// The test's own row of a mark must not be confirmed before it is written.
				if at := lsn(t, tb.ReadSlot(t).Confirmed); at > floor {
					t.Errorf("the slot is confirmed up to %s, beyond %s, and no mark is durable", at, floor)
				}
				standby.Continue(t)
				if err := <-committed; err != nil {
					t.Fatal(err)
				}
				want := "published 10"
				if after == "delete" {
					want = ""
				}
				tb.becomes(t, want, soon, countBy)
				stopAll(t, r)
				if got := len(tb.k.Consume(t, tb.Topic)); got != 10 {
					t.Errorf("%d records for 10 rows", got)
				}
			})
		})
	}
}

func TestEveryMarkHitsWithAStandbyThatIsAlwaysSlow(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, v pgserver.Version) {
		tb, _ := synchronous(t, v, 100*time.Millisecond)
		r := startAll(t, tb.House)[0]
		const writers, each = 8, 20
		var all sync.WaitGroup
		for w := range writers {
			conn := tb.PG.Conn(t, tb.Database)
			all.Go(func() {
				for i := range each {
					n := w*each + i + 1
					if _, err := conn.Exec(context.Background(), insertRows, "orders", n, n, 1000); err != nil {
						t.Errorf("writer %d: %v", w, err)
					}
				}
			})
		}
		all.Wait()
		tb.becomes(t, fmt.Sprintf("published %d", writers*each), soon, countBy)
		stopAll(t, r)
		tb.judge(t, 0)
	})
}
