package cases

// C78 Log volume during an outage
//
// Source: tapdata/tapdata#2663, it-at-m/digiwf-core#1415, odpi/egeria#1876.
//
// Ideal: less than 1 MB in ten minutes with 1 000 rows/s; repeated errors are
// counted and summarised; payloads are never logged.
//
// Shortened: one minute and 500 rows/s, so less than 100 kB.

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

// marked is what the payloads hold, and the log must not.
const marked = "confidential-content"

// outageWithLoad writes 500 rows/s for a minute and looks at what is logged meanwhile; it
// returns the floor of the last.
func outageWithLoad(t *testing.T, h *rig.House, r *rig.Relay) (floor event.LSN) {
	t.Helper()
	before := len(r.Log())
	rows := 0
	during(t, time.Minute, func() {
		floor = write(t, h, `insert into public.outbox (id, event_id, outbox_route, event_type, occurred_at, payload, ordering_key)
			select gen_random_uuid(), gen_random_uuid(), 'orders', 'Tested', now(), jsonb_build_object('n', n, 'text', $1::text), 'key ' || n % 50
			from generate_series($2::bigint, $2::bigint + 499) as n order by n`, marked, 1001+rows)
		rows += 500
	})
	log := r.Log()[before:]
	t.Logf("%d rows written, %d bytes logged in %d lines; %v lines dropped", rows, len(log), strings.Count(log, "\n"), r.Metric("walrelay_log_lines_dropped_total"))
	if len(log) > 100_000 {
		t.Errorf("%d bytes of log in a minute, bound is 100 kB:\n%s", len(log), lastLines(r, 20))
	}
	if !strings.Contains(r.Log(), "not ready") { // a missing topic is said at the start already
		t.Error("the log does not say that it is not ready")
	}
	if strings.Contains(r.Log(), marked) {
		t.Error("the log holds a payload")
	}
	equal, counted := map[string]int{}, 0.0
	for line := range strings.Lines(r.Log()) {
		var l struct {
			Message, Line string
			Lines         float64
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Errorf("a line is no JSON: %v: %s", err, line)
		}
		if l.Line != "" {
			counted += l.Lines
			continue
		}
		equal[l.Message]++
	}
	for message, n := range equal {
		if n > 6*6+5 { // five in ten seconds, and the time around the minute
			t.Errorf("%d times %q", n, message)
		}
	}
	// What was dropped is summed up, save for the last ten seconds.
	if dropped := r.Metric("walrelay_log_lines_dropped_total"); dropped > 50 && counted == 0 {
		t.Errorf("%v lines were dropped and no line counts them", dropped)
	}
	return floor
}

func TestC78MinuteWithoutKafkaLogsLittle(t *testing.T) {
	t.Parallel()
	k := kafkaserver.Start(t, kafkaserver.Options{})
	h := rig.NewHouse(t, pgserver.Shared(t, pgserver.V18), k.Brokers(), k.Topic(t, 6, nil))
	h.Init(t)
	r := h.Start(t)
	drained(t, h, insertRows(t, h, 1, 100, 0), soon)
	k.Stop(t)
	floor := outageWithLoad(t, h, r)
	k.StartAgain(t)
	drained(t, h, floor, 2*soon)
	oracle.Require(t, committed(t, h), k.Consume(t, h.Topic), 0)
	contains(t, "the log", r.Log(), "all well again")
}

func TestC78MinuteWithoutTheTopicLogsLittle(t *testing.T) {
	t.Parallel()
	k := kafkaserver.Shared(t)
	h := rig.NewHouse(t, pgserver.Shared(t, pgserver.V18), k.Brokers(), fmt.Sprintf("late-%d", time.Now().UnixNano()))
	h.Init(t)
	r := h.Start(t)
	floor := outageWithLoad(t, h, r)
	k.CreateTopic(t, h.Topic, 6, nil)
	drained(t, h, floor, 2*soon)
	oracle.Require(t, committed(t, h), k.Consume(t, h.Topic), 0)
	contains(t, "the log", r.Log(), "all well again")
}
