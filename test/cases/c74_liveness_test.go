package cases

// C74 Liveness tied to dependencies
//
// Source: vectorize-io/hindsight#3329, dnotitia/akb#295.
//
// Ideal: liveness stays 200 while Kafka is away, while Postgres is away, and
// during a very large transaction; readiness is false with the reason in the first
// two. Liveness fails only when the main loops make no step.
//
// Shortened: 25 s in place of 10 minutes, and 300 000 rows in place of 5 million.
// Since a loop may go 60 s without a step, the age of each is held against a
// quarter of that: in ten minutes it would not come further.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/walrelay/walrelay/ops"
	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

// live fails the test unless /healthz answers 200 and no loop is on its way to a failure.
func live(t *testing.T, r *rig.Relay, while string) {
	t.Helper()
	code, body, err := r.Get("/healthz")
	if err != nil || code != 200 {
		t.Errorf("while %s /healthz answers %d %v: %s", while, code, err, body)
		return
	}
	var h ops.Health
	if err := json.Unmarshal([]byte(body), &h); err != nil {
		t.Error(err)
	}
	if len(h.Loops) < 3 {
		t.Errorf("/healthz knows %d loops", len(h.Loops))
	}
	for _, l := range h.Loops {
		if l.AgeSeconds > l.MaxAgeSeconds/4 {
			t.Errorf("while %s the loop %s makes no step for %.1f s of %.0f", while, l.Name, l.AgeSeconds, l.MaxAgeSeconds)
		}
	}
}

func TestC74LivenessAsksNobodyElse(t *testing.T) {
	t.Parallel()
	k := kafkaserver.Start(t, kafkaserver.Options{})
	pg := pgserver.Start(t, pgserver.Options{Settings: map[string]string{"max_wal_size": "4GB"}})
	h := rig.NewHouse(t, pg, k.Brokers(), k.Topic(t, 3, nil))
	h.Init(t)
	r := h.Start(t)
	drained(t, h, insertRows(t, h, 1, 100, 0), soon)
	r.WaitReady(soon)
	const outage = 25 * time.Second

	k.Stop(t)
	floor := insertRows(t, h, 101, 45_000, 1000) // more than may be in flight: the window is full
	reason := r.WaitNotReady(notReadyWithin, "kafka")
	contains(t, "/readyz", reason, k.Brokers()[0])
	during(t, outage, func() { live(t, r, "Kafka is away") })
	k.StartAgain(t)
	drained(t, h, floor, 2*soon)
	r.WaitReady(soon)

	pg.Stop(t, pgserver.Fast)
	reason = r.WaitNotReady(notReadyWithin, "orders")
	contains(t, "/readyz", reason, "disconnected", "remedy")
	during(t, outage, func() { live(t, r, "Postgres is away") })
	pg.StartAgain(t)
	r.WaitReady(soon)

	floor = insertRows(t, h, 50_000, 300_000, 0)
	r.Eventually("the confirmation of the large transaction", 3*soon, func() error {
		live(t, r, "a large transaction is under way")
		if confirmed(t, h) <= floor {
			return errNotYet
		}
		return nil
	})
	oracle.Require(t, committed(t, h), k.Consume(t, h.Topic), 0)

	r.Signal(syscall.SIGSTOP)
	r.Eventually("the stop of all threads", soon, func() error {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", r.PID()))
		for _, thread := range threads {
			stat, _ := os.ReadFile(thread)
			if _, rest, _ := bytes.Cut(stat, []byte(") ")); !bytes.HasPrefix(rest, []byte("T")) {
				err = errNotYet
			}
		}
		return err
	})
	if code, _, err := r.Get("/healthz"); err == nil || !strings.Contains(err.Error(), "Timeout") {
		t.Errorf("/healthz of a frozen process answers %d, %v; want none within the client's time", code, err)
	}
	r.Signal(syscall.SIGCONT)
	r.Eventually("liveness after the freeze", soon, func() error {
		if code, body, err := r.Get("/healthz"); err != nil || code != 200 {
			t.Logf("just after the freeze: %d %v %s", code, err, body)
			return errNotYet
		}
		return nil
	})
}
