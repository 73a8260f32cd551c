package cases

// C38 Cancel does not cancel
//
// Source: twmb/franz-go#930 and #158.
//
// Ideal: with a broker that accepts and never answers, SIGTERM ends the relay
// within the grace; nothing unacknowledged is confirmed; the next start loses
// nothing and repeats at most what was under way.

import (
	"strings"
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

func TestC38SigtermEndsWithinTheGraceWhileTheBrokerIsFrozen(t *testing.T) {
	t.Parallel()
	k := kafkaserver.Start(t, kafkaserver.Options{})
	// A server of its own: on a shared one others commit between the floor and our commit.
	h := rig.NewHouse(t, pgserver.Start(t, pgserver.Options{}), k.Brokers(), k.Topic(t, 3, nil))
	const grace = 3 * time.Second
	h.Top = "grace: 3s"
	h.Init(t)
	r := h.Start(t)
	drained(t, h, insertRows(t, h, 1, 100, 0), soon)

	k.Pause(t)
	floor := insertRows(t, h, 101, 100, 0)
	inFlight(t, r, 100)
	code, took := r.Stop()
	// The grace, and what closing the connections may take on a busy machine.
	if code != 5 || took > grace+4*time.Second {
		t.Errorf("the stop took %s and exited %d, want 5 within the grace of %s", took, code, grace)
	}
	contains(t, "the end of the log", lastLines(r, 6), "100 events unacknowledged", `"unacknowledged":100`, `"published":100`)
	if at := confirmed(t, h); at > floor {
		t.Errorf("the slot was confirmed up to %s although Kafka acknowledged nothing beyond %s", at, floor)
	}
	k.Continue(t)
	next := h.Start(t)
	next.WaitReady(soon)
	drained(t, h, floor, soon)
	oracle.Require(t, committed(t, h), k.Consume(t, h.Topic), 100)
	if strings.Contains(next.Log(), "panic") {
		t.Error("the log holds a panic")
	}
}
