package tablecases

// capture: auto reads the log, and the table while the log cannot be read.

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

// changeOver bounds the time from the loss of the log to the first row that comes
// from the table.
const changeOver = 30 * time.Second

// gear waits until the relay reads its source so.
func gear(t testing.TB, r *rig.Relay, want string, limit time.Duration) {
	t.Helper()
	r.Eventually("gear "+want, limit, func() error {
		if r.Metric("walrelay_source_gear", `state="`+want+`"`) != 1 {
			return errNotYet
		}
		return nil
	})
}

func TestAutoPollsWhileTheRightToReplicateIsRevoked(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, v pgserver.Version) {
		pg := pgserver.Shared(t, v)
		tb := logged(t, pg, "stop")
		tb.Postgres = "capture: auto\n"
		tb.Init(t)
		role, password := pg.NewRole(t, "replication")
		for _, grant := range []string{
			"grant usage on schema public, walrelay to ", "grant all on all tables in schema public to ", "grant all on all tables in schema walrelay to ",
		} {
			tb.Exec(t, grant+role)
		}
		tb.URL = pg.URLAs(role, password, tb.Database)
		r := startAll(t, tb.House)[0]
		tb.fill(t, 50, 10, 5)
		tb.published(t, soon)
		gear(t, r, "log", soon)

		tb.Exec(t, "alter role "+role+" noreplication")
		tb.Exec(t, `select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = $1 and active`, tb.Slot)
		tb.fill(t, 50, 10, 5)
		tb.published(t, changeOver)
		gear(t, r, "poll", soon)
		tb.fill(t, 50, 10, 5)
		tb.published(t, soon)

		tb.Exec(t, "alter role "+role+" replication")
		for range 20 { // across the way back
			tb.fill(t, 10, 10, 5)
			during(t, 500*time.Millisecond)
		}
		gear(t, r, "log", soon)
		tb.published(t, soon)
		r.WaitReady(readyWithin)
		stopAll(t, r)
		// What the log had brought and the walsender's end left without a mark.
		tb.judge(t, 0)
	})
}

func TestAutoCatchesUpWhenTheSlotIsInvalidatedOrDropped(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"invalidated", "dropped"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, v pgserver.Version) {
				pg := smallLog(t, v)
				tb := logged(t, pg, "stop")
				tb.Postgres = "capture: auto\n"
				tb.Init(t)
				r := startAll(t, tb.House)[0]
				tb.fill(t, 50, 10, 5)
				tb.published(t, soon)
				r.Signal(syscall.SIGSTOP) // so that it confirms nothing
				tb.fill(t, 50, 10, 5)
				if how == "invalidated" {
					tb.writeLog(t, 16)
				}
				tb.Exec(t, `checkpoint`)
				tb.Exec(t, `select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = $1 and active`, tb.Slot)
				rig.Eventually(t, "the end of the slot", soon, func() error {
					if how == "invalidated" {
						tb.Exec(t, `checkpoint`)
						if got := tb.ReadSlot(t).WALStatus; got != "lost" {
							return fmt.Errorf("it is %s", got)
						}
						return nil
					}
					_, err := tb.answer(`select pg_drop_replication_slot($1)::text`, tb.Slot)
					return err
				})
				r.Signal(syscall.SIGCONT)
				tb.published(t, changeOver)
				gear(t, r, "log", soon)
				tb.fill(t, 50, 10, 5)
				tb.published(t, soon)
				stopAll(t, r)
				tb.judge(t, 0)
			})
		})
	}
}
