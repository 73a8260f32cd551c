package slot

import "testing"

// A place before the end of the log that is confirmed without a marker looks, at
// the next start, like a slot that somebody else moved. Found by killing a relay
// while Postgres was stopping under load.
func TestOnlyTheEndOfAStoppingServersLogIsConfirmedWithoutAMarker(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name              string
		stopping, insists bool
		safe, received    uint64
		want              uint64
	}{
		{"all is acknowledged and the server waits for nothing else", true, true, 200, 200, 200},
		{"something is under way", true, true, 200, 300, 100},
		{"the server may still write", true, false, 200, 200, 100},
		{"the server does not stop", false, true, 200, 200, 100},
	} {
		s := &Stream{}
		s.settled.Store(100)
		s.safe.Store(c.safe)
		s.received.Store(c.received)
		s.insists.Store(c.insists)
		if c.stopping {
			s.serverStopping.Store(1)
		}
		(&keeper{s: s}).settleUnwritten()
		if got := s.settled.Load(); got != c.want {
			t.Errorf("%s: settled %d, want %d", c.name, got, c.want)
		}
	}
}
