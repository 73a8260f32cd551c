package slot

import (
	"testing"

	"github.com/walrelay/walrelay/event"
)

// The marker follows an idle log in strides: a place behind the last event needs none.
func TestWhatIsRememberedReachesToTheNextEvent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		settled, lastEvent uint64
		at                 event.LSN
		want               bool
	}{
		{settled: 100, lastEvent: 200, at: 100, want: true},
		{settled: 100, lastEvent: 200, at: 150},
		{settled: 100, lastEvent: 200, at: 300},
		{settled: 200, lastEvent: 200, at: 300, want: true},
		{settled: 250, lastEvent: 200, at: 300, want: true},
	} {
		var s Stream
		s.settled.Store(c.settled)
		s.lastEvent.Store(c.lastEvent)
		if got := s.Remembered(event.AtLSN(c.at)); got != c.want {
			t.Errorf("up to %d, with events up to %d: a place at %d is remembered: %t, want %t", c.settled, c.lastEvent, c.at, got, c.want)
		}
	}
}
