package slot

import "time"

const (
	// spellWindow and spellBytes tell a busy spell from quiet times: so many bytes
	// came within one window. 6 MB/s are far above what latency is noticed at.
	spellWindow = 10 * time.Millisecond
	spellBytes  = 64 << 10
	// spellPause is how long the socket is left to fill in a busy spell.
	spellPause = 500 * time.Microsecond
	// spellEnough is worth handing over without a pause.
	spellEnough = 64 << 10
)

// spell decides when reading should wait. A reader that empties the socket as
// fast as it can makes Postgres send each message by a system call of its own,
// and wakes the rest of the relay for each; one that lets the socket fill makes
// both sides work in bulk. In quiet times every message is read at once.
//
// The server's messages do not tell how far behind we are (a logical walsender
// sends the position of the change at hand), so the rate of bytes decides.
type spell struct {
	since time.Time // begin of the window
	bytes int       // that came in it
	busy  bool      // the last full window was
}

// took counts what a read brought.
func (s *spell) took(n int, now time.Time) {
	if now.Sub(s.since) >= spellWindow {
		s.busy = s.bytes >= spellBytes && now.Sub(s.since) < 2*spellWindow
		s.since, s.bytes = now, 0
	}
	s.bytes += n
}

// pause sleeps when there is more to come and little to hand over yet; it
// reports whether it slept, so that the socket should be read once more.
func (s *spell) pause(cur *slab, parsed int, now time.Time) bool {
	if !s.busy || cur == nil || cur.n == parsed || cur.n-parsed >= spellEnough || len(cur.buf)-cur.n < minRead || now.Sub(s.since) >= 2*spellWindow {
		return false
	}
	time.Sleep(spellPause)
	return true
}
