package cases

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/rig"
)

// notReadyWithin is the promise: a fault shows on /readyz after so long.
const notReadyWithin = 15 * time.Second

// insertMany writes rows of route $1 with the numbers $2 to $3 and $4 bytes of pad.
const insertMany = `insert into public.outbox (id, event_id, outbox_route, event_type, status, occurred_at, created_at, payload, ordering_key)
	select gen_random_uuid(), gen_random_uuid(), $1, 'Tested', 'pending', now(), now(), jsonb_build_object('n', n, 'pad', repeat('x', $4)), 'key ' || n % 50
	from generate_series($2::bigint, $3::bigint) as n order by n`

// insertRows commits n rows of 50 keys in one transaction; the payload holds the
// row's number, counted from first, and a pad of so many bytes.
func insertRows(t testing.TB, h *rig.House, first, n, pad int) (floor event.LSN) {
	t.Helper()
	return write(t, h, insertMany, "orders", first, first+n-1, pad)
}

// write commits one statement. It returns a place in the log behind what was
// written and before its commit: a position beyond it confirms the transaction.
func write(t testing.TB, h *rig.House, sql string, args ...any) (floor event.LSN) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, h.PG.URL(h.Database))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	tx, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var text string
	if _, err = tx.Exec(ctx, sql, args...); err == nil {
		err = tx.QueryRow(ctx, `select pg_current_wal_insert_lsn()::text`).Scan(&text)
	}
	if err == nil {
		err = tx.Commit(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	return parseLSN(t, text)
}

// committed is what the oracle needs of all rows in the table that have a number
// in their payload, as those of insertRows do.
func committed(t testing.TB, h *rig.House) []oracle.Commit {
	t.Helper()
	rows, err := h.PG.Conn(t, h.Database).Query(context.Background(),
		`select event_id::text, outbox_route, coalesce(ordering_key, ''), (payload->>'n')::bigint from public.outbox where payload->>'n' is not null`)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c oracle.Commit, err error) {
		return c, row.Scan(&c.EventID, &c.Route, &c.Key, &c.Seq)
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// confirmed is the slot's position.
func confirmed(t testing.TB, h *rig.House) event.LSN {
	t.Helper()
	return parseLSN(t, h.ReadSlot(t).Confirmed)
}

// drained waits until the transaction that write returned the floor of is
// confirmed, and so all before it. The end of the log is no target: an idle relay
// follows it in strides.
func drained(t testing.TB, h *rig.House, floor event.LSN, limit time.Duration) {
	t.Helper()
	rig.Eventually(t, "the confirmation of all that was committed", limit, func() error {
		if at := confirmed(t, h); at <= floor {
			return fmt.Errorf("confirmed is %s, the last transaction ends beyond %s", at, floor)
		}
		return nil
	})
}

// during calls look once a second for as long as d.
func during(t testing.TB, d time.Duration, look func()) {
	t.Helper()
	end := time.NewTimer(d)
	defer end.Stop()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		look()
		select {
		case <-end.C:
			return
		case <-t.Context().Done():
			return
		case <-tick.C:
		}
	}
}

// inFlight waits until the relay has read at least n events that are not acknowledged.
func inFlight(t testing.TB, r *rig.Relay, n int64) {
	t.Helper()
	r.Eventually(fmt.Sprintf("%d events in flight", n), soon, func() error {
		st, err := r.Status()
		if err == nil && st.Sources[0].InFlightEvents < n {
			err = fmt.Errorf("%d events are", st.Sources[0].InFlightEvents)
		}
		return err
	})
}

// published is how many events Kafka has acknowledged since the relay's start.
func published(t testing.TB, r *rig.Relay) int64 {
	t.Helper()
	st, err := r.Status()
	if err != nil {
		t.Fatal(err)
	}
	return st.Sources[0].Events.Published
}

// lastLines are the newest lines of the relay's log.
func lastLines(r *rig.Relay, n int) string {
	lines := strings.Split(strings.TrimSpace(r.Log()), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

var errNotYet = errors.New("not yet")
