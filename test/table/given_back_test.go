package table

import (
	"testing"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/rig"
)

// Two relays are killed one after the other. What the first had in work is given back, the
// second takes the first rows of it again, and those are given back later than the rest: the later rows
// of each key are due before the one whose turn it is, and there are more of them than a claim
// takes. They used to be claimed and released for ever, and nothing else of the source went.
func TestRowsThatWereGivenBackTwiceHoldNobodyUp(t *testing.T) {
	t.Parallel()
	for _, capture := range []string{"poll", "log"} {
		t.Run(capture, func(t *testing.T) {
			t.Parallel()
			on(t, 3, func(t *testing.T, h *rig.House, k *kafkaserver.Server) {
				const rows = 200
				h.Postgres = "capture: " + capture + "\non_gap: catch_up"
				if capture == "poll" {
					h.Postgres = "capture: poll"
				}
				h.Source = "after_publish: mark\nsweep_every: 500ms\npoll: {interval: 100ms, batch: 20}"
				h.Kafka = "in_flight_records: 50"
				h.Init(t)
				if capture == "log" {
					dropSlot(t, h)
				}
				fill(t, h, 1, rows)
				h.Exec(t, `update public.outbox set attempts = 1, available_at = now() - interval '1 min' where (payload->>'n')::int <= 80;
 update public.outbox set attempts = 2, available_at = now() where (payload->>'n')::int <= 20`)
				r := h.Start(t)
				owesNothing(t, h, soon)
				stop(t, r)
				oracle.Require(t, commits(rows, keyOf), k.Consume(t, h.Topic), 0)
			})
		})
	}
}
