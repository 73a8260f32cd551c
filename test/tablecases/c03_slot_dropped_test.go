package tablecases

// C03 Missing slot quietly re-created.
// Source: debezium DBZ-5739 (debezium/debezium#3970), DBZ-7015 (#4919).
// Ideal: a lost slot is told from a first start. The relay refuses, or makes a slot
// and publishes what is unpublished in the table; in both cases the operator sees
// the gap.

import (
	"testing"

	"github.com/walrelay/walrelay/test/pgserver"
)

func TestC03DroppedSlotIsNeverReplacedInSilence(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, v pgserver.Version) {
		tb := logged(t, pgserver.Shared(t, v), "stop")
		tb.Init(t)
		tb.ranOnce(t)
		tb.Exec(t, `select pg_drop_replication_slot($1)`, tb.Slot)
		tb.fill(t, 100, 10, 10)
		r := tb.halts(t, tb.Slot)
		tb.fill(t, 1, 1, 1)
		if got := tb.ask(t, `select count(*)::text from pg_replication_slots where slot_name = $1`, tb.Slot); got != "0" {
			t.Error("a new slot was made in silence")
		}
		stopHalted(t, r)

		tb.onGap("catch_up")
		r = tb.catchesUp(t)
		contains(t, "the log", r.Log(), tb.Slot, "gap")
		stopAll(t, r)
		tb.judge(t, 0)
	})
}

func TestC03SlotDroppedUnderARunningRelayIsCaughtUpFromTheTable(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, v pgserver.Version) {
		tb := logged(t, pgserver.Shared(t, v), "catch_up")
		tb.Init(t)
		r := startAll(t, tb.House)[0]
		tb.fill(t, 50, 10, 5)
		tb.published(t, soon)
		conn := tb.PG.Conn(t, tb.Database)
		// In one statement, so that the relay does not come back in between.
		if _, err := conn.Exec(t.Context(), `do $$
			declare s name := '`+tb.Slot+`';
			begin
				for i in 1..1000 loop
					perform pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = s and active;
					begin
						perform pg_drop_replication_slot(s);
						exit;
					exception when object_in_use then perform pg_sleep(0.01);
					end;
				end loop;
			end $$`); err != nil {
			t.Fatal(err)
		}
		tb.fill(t, 100, 10, 5)
		tb.published(t, soon)
		tb.becomes(t, "1", soon, `select count(*)::text from pg_replication_slots where active and slot_name = $1`, tb.Slot)
		tb.fill(t, 50, 10, 5)
		tb.published(t, soon)
		stopAll(t, r)
		tb.judge(t, 0)
	})
}
