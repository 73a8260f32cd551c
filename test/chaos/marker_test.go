package chaos

import (
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
)

// The marker is written before the server is told: only so can the next process
// tell a slot that the relay moved from one that somebody else moved.
func TestMarkerIsNeverBehindTheSlot(t *testing.T) {
	t.Parallel()
	s := newScene(t, pgserver.Shared(t, pgserver.V18), kafkaserver.Shared(t))
	r := s.Start(t)
	s.published(r, 200, 60*time.Second)
	conn := s.PG.Conn(t, s.Database)
	moves, last := 0, ""
	for deadline := time.Now().Add(20 * time.Second); moves < 40 && time.Now().Before(deadline); {
		var slot, marker string
		var behind bool
		// The slot is read first: a marker that is newer than it proves nothing wrong.
		err := conn.QueryRow(t.Context(), `with s as materialized (select confirmed_flush_lsn as at from pg_replication_slots where slot_name = $1)
			select s.at::text, m.confirmed_lsn::text, m.confirmed_lsn < s.at from s, lateral (select confirmed_lsn from walrelay.source where slot = $1 offset 0) m`, s.Slot).
			Scan(&slot, &marker, &behind)
		if err != nil {
			t.Fatal(err)
		}
		if slot != last {
			moves, last = moves+1, slot
		}
		if behind {
			// One statement has one snapshot, but the slot's position is read live: look again.
			if err := conn.QueryRow(t.Context(), `select confirmed_lsn < $2::text::pg_lsn from walrelay.source where slot = $1`, s.Slot, slot).Scan(&behind); err != nil {
				t.Fatal(err)
			}
			if behind {
				t.Fatalf("the slot confirms %s, the marker still says %s", slot, marker)
			}
		}
	}
	if moves < 10 {
		t.Errorf("the slot moved only %d times: the test saw nothing", moves)
	}
	if v := s.judge(r); v.Duplicates != 0 {
		t.Errorf("%d duplicates: %v", v.Duplicates, v.Examples)
	}
}
