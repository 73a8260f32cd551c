package library

// Case C67, restart from an old snapshot.
// Source: theinterfold/interfold#1669 (2026).
// Ideal: the first stamp after the start is greater than the greatest durable one,
// in the rows and in the topic.

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/walrelay/walrelay/hlc"
	"github.com/walrelay/walrelay/stage"
	"github.com/walrelay/walrelay/stage/postgres"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

func order() stage.Event {
	return stage.Event{Route: "orders", Type: "OrderPlaced", Key: "order-1", Payload: struct{}{}}
}

// writeUntilKilled is the application, on the database that the URL names.
func writeUntilKilled(url string) error {
	if strings.HasPrefix(url, "mongodb://") {
		return writeToMongoUntilKilled(url)
	}
	return writeToPostgresUntilKilled(url)
}

// writeToPostgresUntilKilled: its wall clock is 2 s ahead, it stages 10 000
// events in transactions of 100, and then goes on.
func writeToPostgresUntilKilled(url string) error {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	out, err := open(ctx, pool, postgres.Options{Now: func() time.Time { return time.Now().Add(2 * time.Second) }})
	if err != nil {
		return err
	}
	many := make([]stage.Event, 100)
	for i := range many {
		many[i] = order()
	}
	for range 100 {
		if _, err := commit(ctx, pool, out, many...); err != nil {
			return err
		}
	}
	for {
		if _, err := commit(ctx, pool, out, order()); err != nil {
			return err
		}
	}
}

func TestC67KilledProcessIsFollowedByOneThatStampsAboveItsLastRecord(t *testing.T) {
	t.Parallel()
	h := newShop(t, pgserver.V18)
	r := h.Start(t)
	r.WaitReady(soon)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	writer := exec.Command(program)
	writer.Env = append(os.Environ(), writerURL+"="+h.PG.URL(h.Database), "PGAPPNAME=writer "+h.Database)
	writer.Stderr = os.Stderr
	if err := writer.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = writer.Process.Kill(); _ = writer.Wait() })
	count := func() (n int) {
		if err := h.pool.QueryRow(t.Context(), `select count(*) from outbox`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	rig.Eventually(t, "10 000 stamps, and then some", soon, func() error {
		if n := count(); n < 10_050 {
			return fmt.Errorf("%d rows", n)
		}
		return nil
	})
	if err := writer.Process.Kill(); err != nil { // SIGKILL
		t.Fatal(err)
	}
	_ = writer.Wait()
	// The server ends the session on its own; a transaction that was open is gone then.
	rig.Eventually(t, "the end of the application's session", soon, func() error {
		var n int
		err := h.pool.QueryRow(t.Context(), `select count(*) from pg_stat_activity where application_name = $1`, "writer "+h.Database).Scan(&n)
		if err == nil && n > 0 {
			err = fmt.Errorf("%d sessions", n)
		}
		return err
	})
	var top hlc.Stamp
	for _, rec := range h.k.ConsumeN(t, count(), soon, h.Topic) {
		for _, hd := range rec.Headers {
			if hd.Key == "forze_hlc" {
				s, err := hlc.Parse(string(hd.Value))
				if err != nil {
					t.Fatal(err)
				}
				top = max(top, s)
			}
		}
	}
	// The clock is right again, and behind the dead process's.
	if without := hlc.New(time.Now, 0).Now(); without >= top {
		t.Fatalf("a clock without a checkpoint is at %s, the greatest stamp in the topic is %s: the test proves nothing", without, top)
	}
	out, err := open(t.Context(), h.pool, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if s := out.Clock().Now(); s <= top {
		t.Errorf("the first stamp after the start is %s, the greatest in the topic %s", s, top)
	}
}
