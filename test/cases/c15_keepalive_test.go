package cases

// C15 Keepalive answered with the server's end position.
// Source: faucet-hq/faucet-stream#81, ConduitIO/conduit-connector-postgres#313.
// Ideal: at every moment the confirmed position stays at or below the oldest
// unacknowledged event's commit; nothing is lost after a crash.

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

func TestC15KeepaliveNeverConfirmsWhatKafkaHasNotAcknowledged(t *testing.T) {
	t.Parallel()
	k := kafkaserver.Start(t, kafkaserver.Options{})
	const timeout = 4 * time.Second
	type scene struct {
		h    *rig.House
		l    *ledger
		r    *rig.Relay
		slot *watch
	}
	var scenes []*scene
	for _, v := range pgserver.Versions {
		pg := pgserver.Start(t, pgserver.Options{Version: v, Settings: map[string]string{"wal_sender_timeout": timeout.String()}})
		s := &scene{h: rig.NewHouse(t, pg, k.Brokers(), k.Topic(t, 3, nil))}
		s.h.Init(t)
		s.l = newLedger(s.h)
		s.r = s.h.Start(t)
		s.r.WaitReady(readyWithin)
		s.l.writeMany(t, 10, 5)
		s.l.drained(t, 30*time.Second)
		scenes = append(scenes, s)
	}
	k.Pause(t)
	for _, s := range scenes {
		s.slot = watchSlot(t, s.h)
		s.l.writeMany(t, 1000, 10)
		// Log of others behind the pending rows: the keepalives' position is far beyond.
		s.h.Exec(t, "create table busy as select repeat('x', 1000) from generate_series(1, 5000)")
	}
	paused := time.Now()
	rig.Eventually(t, "keepalives that ask for a reply", 8*timeout, func() error {
		if d := time.Since(paused); d < 2*timeout {
			return fmt.Errorf("%s passed", d)
		}
		return nil
	})
	for _, s := range scenes {
		s.r.Kill()
		looks := s.slot.stop()
		neverPast(t, looks, s.l.floor(10))
		if !slices.ContainsFunc(looks, func(l look) bool { return l.replied.After(paused.Add(timeout)) }) {
			t.Error("no status message was seen while the broker was paused: the test tests nothing")
		}
	}
	k.Continue(t)
	for _, s := range scenes {
		r := s.h.Start(t)
		s.l.drained(t, 60*time.Second)
		// What the killed relay had sent, and the broker took in when it woke up.
		v := s.l.judge(t, k.Consume(t, s.h.Topic), 1000)
		t.Logf("%s: %d duplicates", s.h.PG.Version(), v.Duplicates)
		stopsClean(t, r)
	}
}
