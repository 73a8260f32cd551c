package main

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/test/rig"
)

// durable makes commits wait for the disk, as they do where the rows matter.
func (s *site) durable(t *crew) { s.pg.Set(t, "fsync", "on") }

// tidy leaves nothing behind that the next drain would pay for.
func tidy(t *crew, conn *pgx.Conn) {
	for _, sql := range []string{"vacuum analyze outbox", "checkpoint"} {
		if _, err := conn.Exec(context.Background(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// awaitSettled waits until no row of the outbox is unfinished. It begins when all
// are published, so that it looks a few times only.
func awaitSettled(t *crew, conn *pgx.Conn) {
	ctx := context.Background()
	// The statistics are those of a table of pending rows, by which a scan finds one at once.
	if _, err := conn.Exec(ctx, `set enable_seqscan = off; set enable_bitmapscan = off`); err != nil {
		t.Fatal(err)
	}
	rig.Eventually(t, "the last mark", 10*time.Minute, func() error {
		var left bool
		err := conn.QueryRow(ctx, `select exists (select from outbox where outbox_route = 'orders' and status in ('pending', 'processing'))`).Scan(&left)
		if err == nil && left {
			err = errors.New("some rows are unfinished")
		}
		return err
	})
}

// checkTable wants all rows as after says: marked or gone.
func checkTable(t *crew, conn *pgx.Conn, after string, rows int) {
	var all, published int
	if err := conn.QueryRow(context.Background(), `select count(*), count(*) filter (where status = 'published') from outbox`).Scan(&all, &published); err != nil {
		t.Fatal(err)
	}
	want := rows
	if after == "delete" {
		want = 0
	}
	if all != want || published != want {
		t.Fatalf("the table holds %d rows, %d of them published; want %d after %s", all, published, want, after)
	}
}
