package cases

// C07 Kafka slow, walsender gives up.
// Source: MaterializeInc/materialize#6835, 2ndQuadrant/bdr#233, isdaniel/pg2any#1.
// Ideal: no walsender timeouts in the server's log; status messages go on during
// the stall with an unchanged flush position; no duplicates after it.
//
// The report pauses the broker for 60 s at wal_sender_timeout=3s. Four times the
// timeout shows the same.

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

func TestC07StalledBrokerNeverEndsTheWalsender(t *testing.T) {
	t.Parallel()
	k := kafkaserver.Start(t, kafkaserver.Options{})
	const timeout = 3 * time.Second
	type scene struct {
		name  string
		v     pgserver.Version
		write func(*ledger)
		h     *rig.House
		l     *ledger
		r     *rig.Relay
		slot  *watch
	}
	small := func(l *ledger) { l.writeMany(t, 10_000, 100) }
	// 200 MB in one transaction: six times what the relay may have in flight.
	large := func(l *ledger) {
		l.pad = 4000
		l.writeMany(t, 50_000, 50_000)
	}
	scenes := []*scene{
		{name: "10000 rows on 15", v: pgserver.V15, write: small},
		{name: "10000 rows on 18", v: pgserver.V18, write: small},
		{name: "one transaction of 200 MB on 18", v: pgserver.V18, write: large},
	}
	for _, s := range scenes {
		pg := pgserver.Start(t, pgserver.Options{Version: s.v, Settings: map[string]string{"wal_sender_timeout": timeout.String()}})
		s.h = rig.NewHouse(t, pg, k.Brokers(), k.Topic(t, 3, nil))
		s.h.Init(t)
		s.l = newLedger(s.h)
		s.r = s.h.Start(t)
		s.r.WaitReady(readyWithin)
		s.l.write(t, "before")
		s.l.drained(t, 30*time.Second)
	}
	k.Pause(t)
	for _, s := range scenes {
		s.write(s.l)
		s.slot = watchSlot(t, s.h)
	}
	paused := time.Now()
	rig.Eventually(t, "the end of the pause", 8*timeout, func() error {
		if d := time.Since(paused); d < 4*timeout {
			return fmt.Errorf("%s passed", d)
		}
		return nil
	})
	for _, s := range scenes {
		looks := s.slot.stop()
		neverPast(t, looks, s.l.floor(1))
		// What was done before the pause may be confirmed a second late.
		late := slices.IndexFunc(looks, func(l look) bool { return l.at.Sub(looks[0].at) > 2*time.Second })
		if late < 0 {
			t.Fatalf("%s: the slot was watched for less than 2 s", s.name)
		}
		first := looks[late]
		for _, l := range looks[late:] {
			// While the server works its way to the end of a large transaction, what lies
			// before may still be confirmed; the floor judges that.
			moved := l.confirmed != first.confirmed && s.l.pad == 0
			if l.pid != first.pid || l.pid == 0 || moved {
				t.Errorf("%s: at first PID %d had the slot at %s, then PID %d at %s", s.name, first.pid, first.confirmed, l.pid, l.confirmed)
				break
			}
			if silent := l.at.Sub(l.replied); silent > timeout {
				t.Errorf("%s: no status message for %s", s.name, silent)
				break
			}
		}
		// What it shows is true: it does not flow, and the broker is why.
		s.r.WaitNotReady(15*time.Second, s.h.Topic)
		if code, body, err := s.r.Get("/healthz"); code != 200 || err != nil {
			t.Errorf("%s: /healthz answers %d %s %v: a stalled broker is no reason to be restarted", s.name, code, body, err)
		}
	}
	k.Continue(t)
	for _, s := range scenes {
		s.l.drained(t, 60*time.Second)
		s.r.WaitReady(readyWithin)
		s.l.judge(t, k.Consume(t, s.h.Topic), 0)
		if strings.Contains(s.h.PG.Log(), "due to replication timeout") {
			t.Errorf("%s: the server ended the walsender for its timeout", s.name)
		}
		stopsClean(t, s.r)
	}
}
