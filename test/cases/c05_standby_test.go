package cases

// C05 Rolling restart meets "slot is active for PID".
// Source: estuary/connectors#1705, aiven/devportal#1426.
// Ideal: the second copy waits as standby with a message that names the holder's
// PID and application name, and takes over within wal_sender_timeout and one
// backoff after the first is gone, without loss and in order. It does not
// terminate a holder it cannot prove dead.

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

const (
	senderTimeout = 3 * time.Second
	// takeover is wal_sender_timeout, at most one pause of a standby (1 s), and
	// two seconds for two busy cores.
	takeover = senderTimeout + time.Second + 2*time.Second
)

// pair is a relay that has the slot, one that stands by, and a writer.
type pair struct {
	h             *rig.House
	k             *kafkaserver.Server
	l             *ledger
	first, second *rig.Relay
	way           *proxy // to Postgres, for the first
	holder        int    // PID of the first's walsender
	stopWriting   func()
	slot          *watch
}

func newPair(t *testing.T, v pgserver.Version) *pair {
	t.Helper()
	// A server of its own, for its timeout.
	pg := pgserver.Start(t, pgserver.Options{Version: v, Settings: map[string]string{"wal_sender_timeout": senderTimeout.String()}})
	k := kafkaserver.Shared(t)
	p := &pair{h: rig.NewHouse(t, pg, k.Brokers(), k.Topic(t, 3, nil)), k: k, way: newProxy(t, pg.Port(), nil)}
	p.h.Init(t)
	p.l = newLedger(p.h)
	p.slot = watchSlot(t, p.h)
	p.stopWriting = p.l.keepWriting(t, 20*time.Millisecond)

	through := *p.h
	through.URL = p.way.through(t, pg.URL(p.h.Database))
	p.first = through.Start(t)
	p.first.WaitReady(readyWithin)
	p.holder = p.h.ReadSlot(t).PID
	p.second = p.h.Start(t)
	p.second.Eventually("standing by", readyWithin, func() error {
		code, body, err := p.second.Get("/readyz")
		if err == nil && (code != 200 || !strings.Contains(body, string(event.StateStandby))) {
			err = fmt.Errorf("%d %s", code, body)
		}
		if err == nil {
			contains(t, "the standby", body, strconv.Itoa(p.holder), "walrelay/orders")
		}
		return err
	})
	return p
}

// tookOver waits for the second to have the slot, judges how long it took, and
// returns what was confirmed when it began.
func (p *pair) tookOver(t *testing.T, since time.Time) (confirmed event.LSN) {
	t.Helper()
	rig.Eventually(t, "the take-over", takeover, func() error {
		if s := p.h.ReadSlot(t); !s.Active || s.PID == p.holder {
			return fmt.Errorf("the slot is with PID %d", s.PID)
		}
		return nil
	})
	t.Logf("%s after the first was gone, the second had the slot", time.Since(since).Round(10*time.Millisecond))
	rig.Eventually(t, "the watch seeing it", 10*time.Second, func() error {
		for _, l := range p.slot.seen() {
			if l.pid != 0 && l.pid != p.holder {
				return nil
			}
			confirmed = l.confirmed
		}
		return errNothingYet
	})
	return confirmed
}

// end drains and judges: duplicates are those that the first had sent and not confirmed.
func (p *pair) end(t *testing.T, confirmed event.LSN, at int) {
	t.Helper()
	p.second.Eventually("streaming", readyWithin, func() error {
		st, err := p.second.Status()
		if err == nil && st.Sources[0].State != event.StateStreaming {
			err = fmt.Errorf("the second is %s", st.Sources[0].State)
		}
		return err
	})
	p.stopWriting()
	p.l.drained(t, 30*time.Second)
	window := p.l.unconfirmed(confirmed) - (len(p.l.committed()) - at)
	v := p.l.judge(t, p.k.Consume(t, p.h.Topic), max(window, 0))
	t.Logf("%d committed, %d duplicates of at most %d", v.Committed, v.Duplicates, window)
	if strings.Contains(p.h.PG.Log(), "administrator command") {
		t.Error("somebody's backend was terminated")
	}
	stopsClean(t, p.second)
}

func TestC05StandbyTakesOverFromAKilledRelayAndFromNoLivingOne(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, v pgserver.Version) {
		p := newPair(t, v)
		// Twice the timeout beside a living holder: it keeps the slot.
		living := time.Now()
		rig.Eventually(t, "time", 10*senderTimeout, func() error {
			if s := p.h.ReadSlot(t); s.PID != p.holder {
				t.Fatalf("the slot went from PID %d to PID %d, and nobody had died", p.holder, s.PID)
			}
			if time.Since(living) < 2*senderTimeout {
				return fmt.Errorf("%s passed", time.Since(living))
			}
			return nil
		})
		p.first.Signal(syscall.SIGSTOP)
		rig.Eventually(t, "a second's look", 10*time.Second, func() error {
			if st, err := p.second.Status(); err != nil || st.Sources[0].State != event.StateStandby {
				t.Fatalf("beside a paused relay the second is not standing by: %v %v", st.Sources, err)
			}
			if time.Since(living) < 2*senderTimeout+time.Second {
				return fmt.Errorf("not yet")
			}
			return nil
		})
		at, killed := len(p.l.committed()), time.Now()
		p.first.Kill()
		confirmed := p.tookOver(t, killed)
		p.end(t, confirmed, at)
	})
}

func TestC05StandbyTakesOverFromARelayThatHangs(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, v pgserver.Version) {
		p := newPair(t, v)
		stopped := time.Now()
		p.first.Signal(syscall.SIGSTOP)
		confirmed := p.tookOver(t, stopped)
		at := len(p.l.committed())
		// It wakes up again, with records in its hands: they are duplicates at most,
		// and it stands by.
		p.first.Signal(syscall.SIGCONT)
		p.first.Eventually("standing by", readyWithin, p.isStandby(p.first))
		p.end(t, confirmed, at)
		if code, _ := p.first.Stop(); code != 0 && code != 5 {
			t.Errorf("the relay that hung exited %d", code)
		}
	}, pgserver.V18)
}

func TestC05StandbyTakesOverFromARelayWhosePacketsAreLost(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, v pgserver.Version) {
		p := newPair(t, v)
		cut := time.Now()
		p.way.drop()
		confirmed := p.tookOver(t, cut)
		at := len(p.l.committed())
		// 10 s is the shortest time after which a silent wire counts as dead.
		p.first.WaitNotReady(15*time.Second, "the server")
		p.way.pass()
		p.first.Eventually("standing by", readyWithin, p.isStandby(p.first))
		p.end(t, confirmed, at)
	})
}

func (p *pair) isStandby(r *rig.Relay) func() error {
	return func() error {
		st, err := r.Status()
		if err == nil && st.Sources[0].State != event.StateStandby {
			err = fmt.Errorf("it is %s", st.Sources[0].State)
		}
		return err
	}
}
