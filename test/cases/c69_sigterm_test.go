package cases

// C69 SIGTERM with records in flight
//
// Source: fluent/fluent-bit#4939 and #5593, feldera/feldera#6652.
//
// Ideal: nothing is lost, whatever the moment; nothing is repeated while the
// broker is healthy and the grace suffices. Exit code 0, or 5 with the number of
// events that are left; a last line counts what was published and what is left.
//
// Shortened: 15 rounds in place of 50.

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

// sourceEnd is the line about a source at the end of a run.
type sourceEnd struct {
	Message                             string
	Received, Published, Unacknowledged int64
}

func endOf(t *testing.T, r *rig.Relay) (e sourceEnd) {
	t.Helper()
	for line := range strings.Lines(r.Log()) {
		if strings.Contains(line, `"message":"source ended"`) {
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(err)
			}
		}
	}
	if e.Message == "" {
		t.Errorf("the log has no line about the source's end:\n%s", lastLines(r, 5))
	}
	return e
}

func TestC69SigtermAtAnyMomentLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	k := kafkaserver.Shared(t)
	h := rig.NewHouse(t, pgserver.Shared(t, pgserver.V18), k.Brokers(), k.Topic(t, 6, nil))
	h.Kafka = "linger: 1s"
	h.Init(t)
	const rounds, rows = 15, 5000
	floor := event.LSN(0)
	for i := range rounds {
		r := h.Start(t)
		floor = insertRows(t, h, 1+i*rows, rows, 100)
		// Some rounds end before a record was sent, some while they are, some after.
		moment := time.NewTimer(rand.N(2500 * time.Millisecond))
		<-moment.C
		code, took := r.Stop()
		if code != 0 {
			t.Errorf("round %d: the stop took %s and exited %d, want 0:\n%s", i, took, code, lastLines(r, 5))
		}
		if e := endOf(t, r); e.Published != e.Received || e.Unacknowledged != 0 {
			t.Errorf("round %d: exit code %d with %+v", i, code, e)
		}
	}
	r := h.Start(t)
	drained(t, h, floor, soon)
	r.WaitReady(soon)
	oracle.Require(t, committed(t, h), k.Consume(t, h.Topic), 0)
}

func TestC69SigtermWithASlowBrokerSaysHowMuchIsLeft(t *testing.T) {
	t.Parallel()
	k, line := slowBroker(t)
	h := rig.NewHouse(t, pgserver.Shared(t, pgserver.V18), k.Brokers(), k.Topic(t, 6, nil))
	h.Kafka = "linger: 1s"
	h.Top = "grace: 1s"
	h.Init(t)
	r := h.Start(t)
	drained(t, h, insertRows(t, h, 1, 100, 1000), soon)
	line.rate.Store(100_000) // 5 MB take 50 s
	floor := insertRows(t, h, 101, 5000, 1000)
	inFlight(t, r, 4000)
	code, took := r.Stop()
	if code != 5 || took > 5*time.Second {
		t.Errorf("the stop took %s and exited %d, want 5 soon after the grace of 1 s", took, code)
	}
	left := int64(-1)
	if m := regexp.MustCompile(`stopped with (\d+) events unacknowledged`).FindStringSubmatch(r.Log()); m != nil {
		_, _ = fmt.Sscan(m[1], &left)
	}
	e := endOf(t, r)
	if e.Unacknowledged != left || left < 1 || e.Received != e.Published+left {
		t.Errorf("the process says that %d events are left, the source %+v", left, e)
	}
	line.rate.Store(0)
	h.Start(t).WaitReady(soon)
	drained(t, h, floor, soon)
	// The broker may have had what it could not acknowledge in time.
	v := oracle.Require(t, committed(t, h), k.Consume(t, h.Topic), int(left)+2000)
	t.Logf("%d events left, %s", left, v)
}
