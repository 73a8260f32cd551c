package table

import (
	"fmt"
	"testing"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/rig"
)

// The relay dies between putting an event aside and remembering how far the log is, and
// the event is told to go again before the next relay starts: the log brings it, and so does the store.
func TestParkedEventComesOnceAlthoughTheLogBringsItAgainAfterACrash(t *testing.T) {
	t.Parallel()
	for _, preset := range []string{"forze", "basic", "debezium"} {
		for _, holds := range []bool{true, false} {
			t.Run(fmt.Sprint(preset, "/hold back ", holds), func(t *testing.T) {
				t.Parallel()
				on(t, 1, func(t *testing.T, h *rig.House, k *kafkaserver.Server) {
					h.Topic = k.Topic(t, 1, map[string]string{"max.message.bytes": fmt.Sprint(limit)})
					h.Preset, h.Kafka = preset, "on_poison: park"
					h.Source = "after_publish: delete\nsweep_every: 500ms\npoll: {lease: 3s}"
					h.Routes = fmt.Sprintf("\"*\": {topic: %s, hold_back: %t}", h.Topic, holds)
					h.Init(t)
					r := h.Start(t)
					r.WaitReady(soon)
					reads(t, r, "log")
					end := putAt(t, h, "a", 1)
					k.ConsumeN(t, 1, soon, h.Topic)
					confirmed(t, h, end)

					// From now on no position is remembered.
					h.Exec(t, `create function walrelay.no() returns trigger language plpgsql as $$ begin raise 'not now' using errcode = '40001'; end $$`)
					h.Exec(t, `create trigger no before insert or update on walrelay.source for each row execute function walrelay.no()`)
					putAndDelete(t, h, "a", 2, 2, 2*limit)
					entries := 1
					if holds {
						putAndDelete(t, h, "a", 3, 3, 0)
						entries = 2
					}
					r.Eventually("the entries", soon, func() error {
						if list := parkedList(t, h); len(list) != entries {
							return fmt.Errorf("entries %+v, want %d", list, entries)
						}
						return nil
					})
					r.Kill()
					h.Exec(t, `drop trigger no on walrelay.source`)
					raise(t, k, h.Topic)
					if out, code := h.Command(t, "parked", "retry", "--all"); code != 0 {
						t.Fatalf("parked retry exited %d: %s", code, out)
					}

					r = h.Start(t)
					r.Eventually("nothing put aside", soon, func() error {
						if list := parkedList(t, h); len(list) > 0 {
							return fmt.Errorf("entries %+v", list)
						}
						return nil
					})
					put(t, h, "a", 8, 8, 0)
					want := "1 2 8"
					if holds {
						want = "1 2 3 8"
					}
					if got := numbers(k.ConsumeN(t, len(want)/2+1, soon, h.Topic)); got["a"] != want {
						t.Errorf("arrived %q, want %q", got["a"], want)
					}
					stop(t, r)
				})
			})
		}
	}
}

// putAt commits one event and answers a place in the log right before its commit.
func putAt(t *testing.T, h *rig.House, key string, n int) (before string) {
	t.Helper()
	tx, err := h.PG.Conn(t, h.Database).Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), insertOf[h.Preset], n, n, key, 0)
	}
	if err == nil {
		err = tx.QueryRow(t.Context(), `select pg_current_wal_insert_lsn()::text`).Scan(&before)
	}
	if err == nil {
		err = tx.Commit(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return before
}
