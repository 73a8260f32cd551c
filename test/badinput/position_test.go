package badinput

import (
	"testing"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

// TestSlotMovedByOthersIsAGapAndNotAStart: somebody advanced the slot while the
// relay was away. A slot that is gone or was given up: slot_test.go.
func TestSlotMovedByOthersIsAGapAndNotAStart(t *testing.T) {
	t.Parallel()
	for _, version := range []pgserver.Version{pgserver.V15, pgserver.V18} {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			k := kafkaserver.Shared(t)
			h := rig.NewHouse(t, pgserver.Shared(t, version), k.Brokers(), k.Topic(t, 1, nil))
			h.Init(t)
			r := h.Start(t)
			confirmedPast(t, h, commits(t, h, row("orders", "a", 1)))
			r.Stop()
			marked := h.ReadSlot(t).Confirmed
			commits(t, h, row("orders", "a", 2))
			h.Exec(t, `select pg_replication_slot_advance(slot_name, pg_current_wal_lsn()) from pg_replication_slots where slot_name = '`+h.Slot+`'`)
			moved := h.ReadSlot(t).Confirmed
			commits(t, h, row("orders", "a", 3))

			out, code := h.Command(t, "run", "--exit-on-halt")
			if code != exitGap {
				t.Errorf("run --exit-on-halt exited %d, want %d", code, exitGap)
			}
			contains(t, "run --exit-on-halt", out, h.Slot, marked, moved, "walrelay init --new-slot")
			r = h.Start(t)
			contains(t, "/readyz", r.WaitNotReady(soon, "advanced"), h.Slot, marked, moved)
			r.Stop()
			if at := h.ReadSlot(t).Confirmed; at != moved {
				t.Errorf("the slot moved on from %s to %s", moved, at)
			}
			// Passing the third row alone would hide the loss of the second.
			if n := len(k.Consume(t, h.Topic)); n != 1 {
				t.Errorf("%d records, want only the first", n)
			}
		})
	}
}
