package mongo

import (
	"testing"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/test/mongoserver"
)

func TestStandbyTakesOverWithinTenSecondsOfAKillAndAtOnceAfterAStop(t *testing.T) {
	t.Parallel()
	s := newScene(t, mongoserver.Shared(t))
	s.Init(t)
	first := s.Start(t)
	s.streams(first)
	second := s.Start(t)
	s.state(second, event.StateStandby)
	second.WaitReady(soon) // a rolling update waits for it
	ids := []string{s.insert("a")}
	s.delivers(first, ids...)

	killed := time.Now()
	first.Kill()
	ids = append(ids, s.insert("a"))
	s.state(second, event.StateStreaming)
	if took := time.Since(killed); took > 10*time.Second {
		t.Errorf("the standby took over after %s, want 10 s at most", took)
	} else {
		t.Logf("the standby took over %s after the kill", took.Round(10*time.Millisecond))
	}
	s.holds(second, ids...)

	third := s.Start(t)
	s.state(third, event.StateStandby)
	began := time.Now()
	if code, _ := second.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	s.state(third, event.StateStreaming)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("after a stop it took the standby %s, want a second or two", took)
	}
	s.holds(third, append(ids, s.insert("a"))...)
}
