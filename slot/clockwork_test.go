package slot

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// The sweep nudges as long as it waits for the log, which on a server that shuts
// down is for ever: the relay stayed, and the shutdown with it. Found by ten minutes of
// restarts under load.
func TestStoppingServerIsLeftHoweverOftenTheStreamIsNudged(t *testing.T) {
	t.Parallel()
	here, there := net.Pipe()
	t.Cleanup(func() { _ = here.Close(); _ = there.Close() })
	go func() { _, _ = io.Copy(io.Discard, there) }()
	s := &Stream{opt: Options{}.WithDefaults()}
	s.settled.Store(100)
	s.serverStopping.Store(time.Now().UnixNano())
	w := &wire{s: s, sess: &session{conn: here}, edge: edge{received: 200}, every: time.Second, timeout: time.Minute}
	for since := time.Duration(0); since < leaveAfter+time.Second; since += wake {
		s.Nudge()
		w.now = time.Now().Add(since)
		w.lastRead = w.now
		if err := w.tick(); err != nil {
			if !errors.Is(err, errLeft) || since < leaveAfter-wake {
				t.Fatalf("after %s: %v", since, err)
			}
			return
		}
	}
	t.Errorf("the relay stays in the stream of a server that has been stopping for %s", leaveAfter)
}

func TestSilentWireIsNoticedHoweverOftenTheStreamIsNudged(t *testing.T) {
	t.Parallel()
	here, there := net.Pipe()
	t.Cleanup(func() { _ = here.Close(); _ = there.Close() })
	go func() { _, _ = io.Copy(io.Discard, there) }()
	s := &Stream{opt: Options{}.WithDefaults()}
	w := &wire{s: s, sess: &session{conn: here}, every: time.Second, timeout: time.Minute}
	w.lastRead = time.Now()
	s.Nudge()
	w.now = w.lastRead.Add(2 * time.Minute)
	if err := w.tick(); err == nil {
		t.Error("two silent minutes went unnoticed")
	}
}
