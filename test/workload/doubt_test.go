package workload

import (
	"context"
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/pgserver"
)

// A session that is ended while its commit waits for a synchronous standby gets
// an error, although the transaction is committed.
func TestLostAnswersToCommitsAreLookedUp(t *testing.T) {
	t.Parallel()
	srv := pgserver.Start(t, pgserver.Options{})
	conn := srv.Conn(t)
	CreateForze(t, conn, "public.outbox")
	l := New(t, Options{DSN: srv.URL("postgres"), Table: "public.outbox", Writers: 4})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.Run(ctx, t)
	}()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	until := func(reached func() bool) {
		t.Helper()
		for !reached() {
			select {
			case <-tick.C:
			case <-t.Context().Done():
				t.Fatal("the writers got nowhere")
			}
		}
	}
	const waiting = "from pg_stat_activity where wait_event = 'SyncRep'"
	until(func() bool { return l.Stats().Transactions > 50 })
	srv.Set(t, "synchronous_standby_names", "nobody")
	until(func() bool {
		var n int
		if err := conn.QueryRow(t.Context(), "select count(*) "+waiting).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n > 0
	})
	srv.Exec(t, "select pg_terminate_backend(pid) "+waiting)
	srv.Set(t, "synchronous_standby_names", "")
	until(func() bool { return l.Stats().InDoubt > 0 })
	cancel()
	<-done
	compare(t, l.Committed(), stored(t, conn, "event_id"))
}
