package badinput

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/test/rig"
)

// The exit codes that tell what kind of bad input it was.
const (
	exitUsage        = 2
	exitPrecondition = 3
	exitGap          = 4
)

// soon bounds what ought to take well under a second, on a machine that runs
// many other things.
const soon = 60 * time.Second

// contains fails the test for each text that is not in what.
func contains(t *testing.T, what, in string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(in, text) {
			t.Errorf("%s does not say %q: %s", what, text, in)
		}
	}
}

// commits runs one statement in a transaction and returns a place in the log
// between its work and its commit: a position that covers the transaction is above it.
func commits(t *testing.T, h *rig.House, sql string, args ...any) event.LSN {
	t.Helper()
	ctx := context.Background()
	tx, err := h.PG.Conn(t, h.Database).Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if _, err := tx.Exec(ctx, sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	var text string
	if err := tx.QueryRow(ctx, "select pg_current_wal_insert_lsn()::text").Scan(&text); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	lsn, err := event.ParseLSN(text)
	if err != nil {
		t.Fatal(err)
	}
	return lsn
}

// row inserts one forze event with the columns' values as SQL, and a number as its payload.
func row(route, key string, n int) string {
	return values(fmt.Sprintf("gen_random_uuid(), '%s', '%d', '%s'", route, n, key))
}

// values inserts one forze event; v is event id, route, payload and key, as SQL.
func values(v string) string {
	return `insert into public.outbox (event_id, outbox_route, payload, ordering_key, id, event_type, occurred_at)
		values (` + v + `, gen_random_uuid(), 'Tested', now())`
}

// looseTable is an outbox that forbids nothing, as tables made by others may be.
func looseTable(t *testing.T, h *rig.House) {
	t.Helper()
	h.Exec(t, `create table outbox (id uuid primary key, event_id uuid, outbox_route text, event_type text, status text default 'pending',
		occurred_at timestamptz, created_at timestamptz default now(), payload jsonb, ordering_key text, available_at timestamptz, published_at timestamptz)`)
}

// keeps ends the relay, which tells the server its last word in doing so, and
// fails the test unless the slot still has exactly the inserts that were not
// published.
func keeps(t *testing.T, h *rig.House, r *rig.Relay, inserts int) {
	t.Helper()
	r.Stop()
	conn := h.PG.Conn(t, h.Database)
	left := -1
	rig.Eventually(t, "a look into the slot", soon, func() error { // its walsender may still be leaving
		return conn.QueryRow(context.Background(), `
			select count(*) from pg_logical_slot_peek_binary_changes($1, null, null, 'proto_version', '1', 'publication_names', $2)
			where get_byte(data, 0) = ascii('I')`, h.Slot, h.Publication).Scan(&left)
	})
	if left != inserts {
		t.Errorf("%d rows are left in the slot, %d were not published", left, inserts)
	}
}

// confirmedPast waits until a transaction is confirmed.
func confirmedPast(t *testing.T, h *rig.House, floor event.LSN) {
	t.Helper()
	rig.Eventually(t, "the confirmation of "+floor.String(), soon, func() error {
		if at, err := event.ParseLSN(h.ReadSlot(t).Confirmed); err != nil || at <= floor {
			return fmt.Errorf("confirmed is %s %v", at, err)
		}
		return nil
	})
}
